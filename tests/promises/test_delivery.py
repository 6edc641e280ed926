"""What becomes of messages: all in order while both ends live, and told when not."""

from __future__ import annotations

import os
import random
import signal
import zlib
from pathlib import Path

import monarch._core as core
import pytest

from monarch.actor import Actor, ActorCrashError, SupervisionError, current_rank, endpoint
from monarch.errors import FrameError
from tests.watching import resident

T = 120
MOST = 256 << 10


class Receiver(Actor):
    """Counts what each sender sends; a message out of place is kept as a complaint."""

    def __init__(self) -> None:
        self.next: dict[int, int] = {}
        self.sums: dict[int, int] = {}
        self.wrong: list[str] = []

    @endpoint
    def take(self, sender: int, number: int, data: bytes) -> None:
        if number != self.next.get(sender, 0):
            self.wrong.append(f"{number} of {sender}, wanted {self.next.get(sender, 0)}")
        self.next[sender] = number + 1
        self.sums[sender] = zlib.crc32(data, self.sums.get(sender, 0))

    @endpoint
    def seen(self) -> tuple[dict[int, int], dict[int, int], list[str]]:
        return self.next, self.sums, self.wrong


def messages(sender: int, count: int) -> list[bytes]:
    """Of random sizes from 0 to 256 KiB, large ones seldom."""
    chance = random.Random(sender)  # noqa: S311 - the same on both ends
    block = chance.randbytes(MOST)
    return [
        block[: chance.randrange(MOST + 1) if chance.random() < 0.002 else chance.randrange(65)]
        for _ in range(count)
    ]


def send_all(receiver: Receiver, sender: int, count: int) -> int:
    total = 0
    for number, data in enumerate(messages(sender, count)):
        receiver.take.broadcast(sender, number, data)
        total = zlib.crc32(data, total)
    return total


class Sender(Actor):
    @endpoint
    def send(self, receiver: Receiver, count: int) -> tuple[int, int]:
        rank = current_rank().rank
        total = send_all(receiver, rank, count)
        receiver.seen.call_one().get(T)  # comes after what this sender has sent
        return rank, total


@pytest.mark.slow
@pytest.mark.promise("R01")
def test_a_million_messages_of_one_sender_to_one_receiver(cluster):
    receiver = cluster(1).spawn("receiver", Receiver)
    total = send_all(receiver, 0, 1_000_000)
    assert receiver.seen.call_one().get(T) == ({0: 1_000_000}, {0: total}, [])


@pytest.mark.slow
@pytest.mark.promise("R01")
def test_a_million_messages_of_eight_senders_to_one_receiver(cluster):
    receiver = cluster(1).spawn("receiver", Receiver)
    senders = cluster(8).spawn("senders", Sender)
    totals = dict(senders.send.call(receiver, 125_000).get(T).values())
    assert receiver.seen.call_one().get(T) == (dict.fromkeys(range(8), 125_000), totals, [])


@pytest.mark.slow
@pytest.mark.promise("R01")
def test_a_million_messages_of_one_sender_to_eight_receivers(cluster):
    receivers = cluster(8).spawn("receivers", Receiver)
    total = send_all(receivers, 0, 125_000)
    for seen in receivers.seen.call().get(T).values():
        assert seen == ({0: 125_000}, {0: total}, [])


class Counter(Actor):
    """Counts in a file, so that the count outlives the process."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    @endpoint
    def set_fault(self, text: str) -> None:
        core.set_fault(text)

    @endpoint
    def add(self, dies: str = "") -> int:
        if dies == "entered":
            os.kill(os.getpid(), signal.SIGKILL)
        with self.path.open("a", encoding="utf-8") as file:
            file.write("x")
        if dies == "left":
            os.kill(os.getpid(), signal.SIGKILL)
        return self.path.stat().st_size


# What a caller may be told, and how often the endpoint may have run, when the receiver's process is
# killed there. A kill after the reply was written races with the reply's way to the caller.
LOST, VALUE = "lost", "value"
ALLOWED = {
    "request-read": ({LOST}, {0}),
    "request-taken": ({LOST}, {0}),
    "entered": ({LOST}, {0}),
    "left": ({LOST}, {1}),
    "reply-queued": ({LOST}, {1}),
    "reply-written": ({LOST, VALUE}, {1}),
}


@pytest.mark.promise("R03", "R04")
@pytest.mark.parametrize("nth", [1, 2, 5])
@pytest.mark.parametrize("place", ALLOWED)
def test_a_receiver_killed_at_any_boundary_gives_an_allowed_outcome(cluster, tmp_path, place, nth):
    path = tmp_path / "count"
    path.touch()
    mesh = cluster(1)
    counter = mesh.spawn("counter", Counter, str(path))
    inside = place in {"entered", "left"}
    if not inside:
        # The request that sets the fault has been read and taken itself; its reply has not.
        later = nth + 1 if place.startswith("reply") else nth
        counter.set_fault.call_one(f"kill:{place}:{later}").get(T)
    for done in range(1, nth):
        assert counter.add.call_one().get(T) == done
    call = counter.add.call_one(place if inside else "")
    error = call.exception(T)
    if error is None:
        outcome = VALUE if call.get(T) == nth else "wrong value"
    else:
        assert isinstance(error, ActorCrashError)
        assert (error.delivered, error.ranks) == (None, (0,))
        outcome = LOST
    outcomes, runs = ALLOWED[place]
    assert outcome in outcomes
    assert len(path.read_text(encoding="utf-8")) - (nth - 1) in runs
    mesh.failures.wait(1, T)
    with pytest.raises(ActorCrashError) as later_call:
        counter.add.call_one().get(T)
    assert later_call.value.delivered is False


@pytest.mark.promise("R03", "R04")
@pytest.mark.parametrize(
    ("place", "delivered", "runs"),
    [
        ("request-queued", {False}, {0}),
        ("request-written", {None, VALUE}, {0, 1}),  # it may be answered before the cut
        ("reply-read", {None, VALUE}, {1}),
    ],
)
def test_a_link_cut_at_the_callers_end_is_told_once_and_runs_nothing_twice(
    cluster, tmp_path, place, delivered, runs
):
    path = tmp_path / "count"
    path.touch()
    mesh = cluster(1)
    counter = mesh.spawn("counter", Counter, str(path))
    counter.set_fault.call_one("").get(T)
    core.set_fault(f"cut:{place}:1")
    try:
        call = counter.add.call_one()
        told = VALUE if call.get(T) == 1 else "wrong value"
    except SupervisionError as error:
        told = error.delivered
    finally:
        core.set_fault("")
    assert told in delivered
    assert mesh.failures.wait(1, T).ranks == (0,)
    assert len(path.read_text(encoding="utf-8")) in runs


@pytest.mark.parametrize("text", ["kill", "kill:request-read", "stop:reply-read:1", "cut:x:1"])
def test_a_fault_that_is_none_is_refused_with_the_places(text):
    with pytest.raises(ValueError, match="request-queued"):
        core.set_fault(text)


class Slow(Actor):
    """Handles nothing until it is let go; what it holds is measured from outside."""

    def __init__(self, gate: str) -> None:
        self.gate = gate

    @endpoint
    def pid(self) -> int:
        return os.getpid()

    @endpoint
    def wait(self) -> None:
        with Path(self.gate).open("rb") as gate:
            gate.read()

    @endpoint
    def take(self, data: bytes) -> None:
        pass


class Quick(Actor):
    @endpoint
    def add(self, number: int) -> int:
        return number + 1


class Flood(Actor):
    """Sends until it is held up; how far it got is in a file."""

    @endpoint
    def pid(self) -> int:
        return os.getpid()

    @endpoint
    def send(self, slow: Slow, count: int, path: str) -> int:
        data = bytes(10_000)
        for number in range(count):
            slow.take.broadcast(data)
            Path(path).write_text(str(number + 1), encoding="utf-8")
        return count


@pytest.mark.promise("R05")
def test_a_slow_reader_slows_its_senders_and_nobody_else_and_memory_is_bounded(cluster, tmp_path):
    gate, progress = tmp_path / "gate", tmp_path / "progress"
    os.mkfifo(gate)
    slow = cluster(1).spawn("slow", Slow, str(gate))
    flood = cluster(1).spawn("flood", Flood)
    quick = cluster(1).spawn("quick", Quick)
    count, window = 5_000, 16 << 20
    pid = slow.pid.call_one().get(T)
    before = resident(pid)
    waits = slow.wait.call_one()
    (sender,) = flood.pid.call().get(T).values()
    at_first = resident(sender)
    sent = flood.send.call_one(slow, count, str(progress))
    # The flood has come to its end when other calls go on and it does not.
    last = -1
    while True:
        for number in range(2_000):
            assert quick.add.call_one(number).get(T) == number + 1
        now = int(progress.read_text(encoding="utf-8") or 0) if progress.exists() else 0
        if now == last and now:
            break
        last = now
    assert window * 0.9 < last * 10_000 < window * 1.2
    assert resident(pid) - before < 3 * window
    assert resident(sender) - at_first < 3 * window
    with gate.open("wb"):
        pass
    assert sent.get(T) == count
    waits.get(T)


@pytest.mark.promise("R06")
@pytest.mark.parametrize("length", [(64 << 20) + 1, 1 << 31, (1 << 32) - 1])
def test_a_frame_above_the_limit_is_refused_before_anything_is_allocated(length):
    decoder = core.Decoder()
    (header, *_) = core.encode(b"x")
    head = bytearray(bytes(header)[:20])
    head[16:20] = length.to_bytes(4, "little")
    head += crc32c(bytes(head)).to_bytes(4, "little")
    before = resident(os.getpid())
    with pytest.raises(FrameError, match=f"{length} bytes is above the limit of {64 << 20}"):
        decoder.feed(bytes(head))
    assert resident(os.getpid()) - before < 1 << 20


def crc32c(data: bytes) -> int:
    """Castagnoli's, bit by bit (RFC 3720, appendix B.4)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
