"""Finds endpoints that wait for each other in a circle. Pure: probes in, probes out.

An endpoint that holds its actor and has waited long sends a probe along the call it waits for. An
actor that cannot get on with that call, since it waits itself, passes the probe on along its own;
any other drops it. Who waits for all of several calls sends it along each. A probe that comes home
has gone round a circle. A circle is believed when a second probe, sent after the first had come
home, finds the same waits: each of them then lasted all the time in between, so all held at once.
The wait with the highest key in it is the one that is ended. An actor passes what came from one
home on once a round, however many ways lead to it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Key = tuple[int, int, int]

__all__ = ["Call", "Circle", "Hop", "Probe", "Wait", "Waits", "told"]

_LONGEST = 64
_REMEMBERED = 1024


class Call:
    """A call that is waited for: its inbox, who has not answered, and the first such rank."""

    __slots__ = ("inbox", "missing", "rank")

    def __init__(self, inbox: int, missing: Sequence[tuple[int, int]], rank: int = 0) -> None:
        self.inbox = inbox
        self.missing = missing
        self.rank = rank


class Wait:
    """An endpoint that holds its actor while it waits for all of some calls.

    `called` is what its actor cannot begin meanwhile.
    """

    __slots__ = ("called", "calls", "running")

    def __init__(self, running: str, called: str, calls: Sequence[Call]) -> None:
        self.running = running
        self.called = called
        self.calls = calls


class Hop:
    """One wait on the way of a probe: whose, where, what runs there and what it waits for."""

    __slots__ = ("actor", "called", "inbox", "proc", "running")

    def __init__(self, proc: int, actor: int, inbox: int, running: str, called: str = "") -> None:
        self.proc = proc
        self.actor = actor
        self.inbox = inbox
        self.running = running
        self.called = called

    def key(self) -> Key:
        """Tells this wait from every other."""
        return self.proc, self.actor, self.inbox


class Probe:
    """On its way to `actor` of the process `proc`, after `hops`; the first hop is its home."""

    __slots__ = ("actor", "hops", "proc", "round")

    def __init__(self, proc: int, actor: int, hops: tuple[Hop, ...], round: int) -> None:  # noqa: A002 - what it is
        self.proc = proc
        self.actor = actor
        self.hops = hops
        self.round = round


class Circle:
    """The wait that is to end, by its inbox and a rank missing there, and the hops it closes."""

    __slots__ = ("hops", "inbox", "rank")

    def __init__(self, inbox: int, rank: int, hops: tuple[Hop, ...]) -> None:
        self.inbox = inbox
        self.rank = rank
        self.hops = hops


class Waits:
    """The waits of one process.

    Args:
        proc: the process.
        look: `look(actor, proc, inbox)`: what an actor of this process waits for, if that holds up
            the call that is awaited at `inbox` of `proc` (0: any call).

    """

    def __init__(self, proc: int, look: Callable[[int, int, int], Wait | None]) -> None:
        self._proc = proc
        self._look = look
        self._rounds: dict[int, int] = {}
        self._seen: dict[tuple[Key, ...], int] = {}
        self._passed: dict[Key, int] = {}

    def ask(self, actor: int) -> list[Probe]:
        """The probes to send for an actor that has waited long."""
        wait = self._look(actor, 0, 0)
        return [] if wait is None else self._start(actor, wait)

    def probed(self, probe: Probe) -> list[Probe | Circle]:
        """A probe has come to an actor of this process."""
        *before, last = probe.hops
        wait = self._look(probe.actor, last.proc, last.inbox)
        if wait is None or len(probe.hops) >= _LONGEST:
            return []
        hops = (*before, Hop(last.proc, last.actor, last.inbox, last.running, wait.called))
        home = hops[0]
        if (home.proc, home.actor) != (self._proc, probe.actor):
            way = (home.proc, home.actor, probe.actor)
            if self._passed.get(way, 0) >= probe.round:
                return []
            _note(self._passed, way, probe.round)
            return list(self._onward(probe.actor, wait, hops, probe.round))
        keys = tuple(hop.key() for hop in hops)
        call = next((one for one in wait.calls if one.inbox == home.inbox), None)
        if call is None or max(keys) != keys[0]:
            return []
        known = self._seen.get(keys)
        if known is None:
            _note(self._seen, keys, self._rounds.get(probe.actor, probe.round))
            return list(self._start(probe.actor, wait))
        # One of an earlier round was on its way already when the circle was seen.
        return [] if probe.round <= known else [Circle(call.inbox, call.rank, hops)]

    def _start(self, actor: int, wait: Wait) -> list[Probe]:
        number = self._rounds.get(actor, 0) + 1
        _note(self._rounds, actor, number)
        return self._onward(actor, wait, (), number)

    def _onward(self, actor: int, wait: Wait, hops: tuple[Hop, ...], number: int) -> list[Probe]:
        passed = {(hop.proc, hop.actor) for hop in hops[1:]}
        if hops:
            passed.add((self._proc, actor))
        return [
            Probe(proc, other, (*hops, Hop(self._proc, actor, call.inbox, wait.running)), number)
            for call in wait.calls
            for proc, other in call.missing
            if (proc, other) not in passed
        ]


def _note(table: dict, key: object, value: int) -> None:  # type: ignore[type-arg]
    table.pop(key, None)
    table[key] = value
    while len(table) > _REMEMBERED:
        del table[next(iter(table))]


def told(hops: Sequence[Hop]) -> tuple[str, tuple[str, ...]]:
    """The circle in words, and its endpoints in order."""
    first = hops[0]
    names = tuple(hop.running for hop in hops)
    steps = [f"{hop.running} waits for {hop.called}" for hop in hops]
    text = (
        f"deadlock: {' → '.join((*names, names[0]))}. {'; '.join(steps)}, which cannot start "
        f"before {first.running} has ended. An actor handles one endpoint at a time: make one of "
        "them a concurrent_endpoint, call it as a plain method, or do not wait for the answer there"
    )
    return text, names
