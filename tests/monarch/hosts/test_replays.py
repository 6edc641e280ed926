"""What was recorded of links between hosts is of no use, and bytes of a peer do no harm."""

from __future__ import annotations

import json
import random
import subprocess

import pytest

from tests.monarch.hosts.rig import PORT
from tests.watching import resident, until

_HANDSHAKE = 128  # bytes, and more than an answer in it has

_PROGRAM = """
who = attached(sys.argv[1]).spawn_procs().spawn("who", Who)
said = 0
line = "first"
while line:
    for _ in range(20):
        who.keep.broadcast(said)
        said += 1
    kept = who.everything.call_one().get(60)
    tell(said=said, in_order=kept == list(range(said)), failures=len(failures))
    print("ready", flush=True)
    line = sys.stdin.readline()
"""


# What a trusted peer says may be an order to actors: it is the process that lives on.
_NEW_ACTORS = """
procs = attached(sys.argv[1]).spawn_procs()
first, kinds = procs.spawn("first", Who).pid.call_one().get(60), []
line = "first"
while line:
    new = procs.spawn("new", Who)
    for i in range(20):
        new.keep.broadcast(i)
    kinds += [failure.kind for _, failure in failures]
    tell(same=new.pid.call_one().get(60) == first, kept=len(new.everything.call_one().get(60)),
         lost=[kind for kind in kinds if kind in ("signal", "exit", "start", "lost", "hung")])
    print("ready", flush=True)
    line = sys.stdin.readline()
"""


class Taped:
    """A program on the first host that uses the second, by way of a recorder on the third."""

    def __init__(self, rig, folder, *, encrypted, code=_PROGRAM):
        # A connection that broke has one heartbeat to be made again, on a machine that may be busy.
        self.variables = {"MONARCH_HEARTBEAT_INTERVAL": "3s"}
        if not encrypted:
            self.variables["MONARCH_INSECURE_PLAINTEXT"] = "1"
        self.rig = rig
        host, between = rig.others
        self.host = host
        self.folder = folder
        listen = f"tcp://{between.address}:{PORT}@tcp://{host.address}:{PORT}"
        self.served, address = rig.serve(host, listen=listen, variables=self.variables)
        ends = (between.address, str(PORT), host.address, str(PORT))
        self.recorder = rig.start(
            between, ["-m", "ci.rigs.recorder", *ends, str(folder)], stdin=subprocess.PIPE
        )
        assert self.recorder.stdout.readline() == "listens\n"
        self.program = rig.begin(code, address, variables=self.variables)

    def order(self, text):
        self.recorder.stdin.write(f"{text}\n")
        self.recorder.stdin.flush()
        return self.recorder.stdout.readline().strip()

    def go_on(self):
        """Let the program say more."""
        self.program.stdin.write("more\n")
        self.program.stdin.flush()

    def told(self):
        lines = []
        for line in self.program.stdout:
            if line == "ready\n":
                return json.loads(lines[-1])
            lines.append(line)
        raise AssertionError("".join(lines))


@pytest.fixture
def taped(hosts, tmp_path):
    folder = tmp_path / "tape"
    folder.mkdir()
    return lambda **options: Taped(hosts(2), folder, **options)


def good(count):
    return {"said": count, "in_order": True, "failures": 0}


@pytest.mark.promise("X02")
@pytest.mark.parametrize("encrypted", [True, False])
def test_a_recorded_connection_that_is_replayed_is_refused_and_has_no_effect(taped, encrypted):
    link = taped(encrypted=encrypted)
    assert link.told() == good(20)
    link.order("cut")  # so that there is one that goes on with a session, too
    link.go_on()
    assert link.told() == good(40)

    def heard():
        return sorted(path.stat().st_size for path in link.folder.glob("*.down"))

    # To the agent and to the process, each of them twice.
    until(lambda: len(heard()) >= 4 and heard()[-4] > _HANDSHAKE)
    tapes = sorted(link.folder.glob("*.up"), key=lambda path: int(path.stem))
    answers = []
    for path in tapes:
        number, answer = link.order(f"replay {path.stem}").split(":")
        assert number == path.stem
        answers.append(len(bytes.fromhex(answer)))
    # All are answered alike, but for the length of a signature; and so shorter than those of them
    # were that got further than the handshake, which go on with heartbeats where nothing is said.
    assert max(answers) - min(answers) <= 8
    until(lambda: max(answers) < heard()[-4])
    link.go_on()
    assert link.told() == good(60)


@pytest.mark.promise("X02")
@pytest.mark.parametrize("size", [1, 50, 700])
def test_recorded_bytes_that_are_put_into_a_link_break_the_connection_and_nothing_else(taped, size):
    link = taped(encrypted=True)
    assert link.told() == good(20)
    for count in (40, 60):
        assert link.order(f"repeat {size}") == "repeat"
        link.go_on()
        assert link.told() == good(count)


def _frames(data):
    """The frames of a tape in the clear, after the route (24 bytes), HELLO (88) and PROOF (40)."""
    rest, found = data[24 + 88 + 40 :], []
    while len(rest) >= 24:
        size = 24 + int.from_bytes(rest[16:20], "little")
        found.append(rest[:size])
        rest = rest[size:]
    return found


def _damaged(frames, draw):
    """Frames whose headers are right and whose contents are not, or are cut, or come twice."""
    sent = b""
    for frame in frames[: draw.randrange(1, len(frames) + 1)]:
        changed = bytearray(frame)
        for _ in range(draw.choice([0, 0, 1, 1, 3, 30])):
            place = draw.randrange(24, len(changed)) if len(changed) > 24 else 3
            changed[place] = draw.randrange(256)
        sent += bytes(changed)
    return sent[: draw.choice([len(sent), len(sent), draw.randrange(len(sent))])]


# A peer that holds the secret, and then sends what it is told in hexadecimal, a line a connection.
_PEER = """
import os, socket, sys
from monarch._link import handshake, route, secret
to = sys.argv[1], int(sys.argv[2])
wanted = int(sys.argv[3])
for line in sys.stdin:
    with socket.create_connection(to, 20) as sock:
        sock.sendall(route.route(wanted, route.PLAIN))
        own = int.from_bytes(os.urandom(8))
        side = handshake.Dialer(secret.current(), own, handshake.IN_THE_CLEAR, peer=wanted)
        sock.sendall(side.start())
        while side.need:
            sock.sendall(side.feed(sock.recv(side.need)))
        try:
            sock.sendall(bytes.fromhex(line))
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(65536):
                pass
        except (ConnectionError, BrokenPipeError):
            pass
    print("ended", flush=True)
"""


@pytest.mark.promise("X08")
def test_a_peer_that_holds_the_secret_and_sends_garbage_loses_its_link_and_nobody_else_does(taped):
    link = taped(encrypted=False, code=_NEW_ACTORS)
    lives = {"same": True, "kept": 20, "lost": []}
    assert link.told() == lives
    draw = random.Random(8)  # noqa: S311 - to be repeated
    tapes = sorted(link.folder.glob("*.up"))
    before = {pid: resident(pid) for pid in link.host.pids()}
    for path in tapes:
        data = path.read_bytes()
        wanted = int.from_bytes(data[8:16])
        frames = _frames(data)
        assert frames
        command = ["-c", _PEER, link.host.address, str(PORT), str(wanted)]
        pipe = subprocess.PIPE
        peer = link.rig.start(link.rig.here, command, link.variables, stdin=pipe, stderr=None)
        for _ in range(150):
            peer.stdin.write(_damaged(frames, draw).hex() + "\n")
            peer.stdin.flush()
            assert peer.stdout.readline() == "ended\n"
        assert peer.communicate(timeout=60)[0] == ""
        assert peer.returncode == 0
    link.go_on()
    assert link.told() == lives
    for pid, size in before.items():
        assert resident(pid) - size < 64 << 20
