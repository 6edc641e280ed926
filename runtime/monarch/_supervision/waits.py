"""Finds endpoints that wait for each other in a circle. Pure: probes in, probes out.

An endpoint that holds its actor and waits long enough sends a probe along the call it waits for.
An actor that waits as well passes it on along its own; any other drops it. A probe that comes home
has gone round a circle. A circle is believed when two probes in a row found the same waits in it:
each of them then lasted from the first probe to the second, so all of them held at once.
The wait with the highest id in it is the one that is ended. A wait passes the probe of one round on
once, however many ways lead to it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Circle", "Hop", "Probe", "Wait", "Waits", "told"]

_LONGEST = 64


class Hop:
    """One wait on the way of a probe: whose, which, what runs there and what it calls."""

    __slots__ = ("actor", "called", "proc", "running", "wait")

    def __init__(self, proc: int, actor: int, wait: int, running: str, called: str) -> None:
        self.proc = proc
        self.actor = actor
        self.wait = wait
        self.running = running
        self.called = called

    def key(self) -> tuple[int, int, int]:
        """Tells this wait from every other."""
        return self.proc, self.actor, self.wait


class Probe:
    """On its way to `actor` of the process `proc`, after `hops`; the first hop is its home."""

    __slots__ = ("actor", "hops", "proc", "round")

    def __init__(self, proc: int, actor: int, hops: tuple[Hop, ...], round: int) -> None:  # noqa: A002 - what it is
        self.proc = proc
        self.actor = actor
        self.hops = hops
        self.round = round


class Circle:
    """The wait that is to end, and the hops that it closes."""

    __slots__ = ("hops", "wait")

    def __init__(self, wait: Wait, hops: tuple[Hop, ...]) -> None:
        self.wait = wait
        self.hops = hops


class Wait:
    """An endpoint that holds its actor and waits without limit for answers."""

    __slots__ = ("actor", "called", "id", "missing", "passed", "round", "running", "seen", "token")

    def __init__(
        self,
        id: int,  # noqa: A002 - what it is
        actor: int,
        running: str,
        called: str,
        missing: Callable[[], Sequence[tuple[int, int]]],
        token: object,
    ) -> None:
        self.id = id
        self.actor = actor
        self.running = running
        self.called = called
        self.missing = missing
        self.token = token
        self.round = 0
        self.seen: set[tuple[tuple[int, int, int], ...]] = set()
        self.passed: dict[tuple[int, int, int], int] = {}


class Waits:
    """The waits of one process."""

    def __init__(self, proc: int) -> None:
        self._proc = proc
        self._next = 1
        self._waits: dict[int, Wait] = {}

    def __len__(self) -> int:
        return len(self._waits)

    def begin(
        self,
        actor: int,
        running: str,
        called: str,
        missing: Callable[[], Sequence[tuple[int, int]]],
        token: object = None,
    ) -> Wait:
        """`missing` gives the (proc, actor) that have not answered yet; one wait an actor."""
        wait = Wait(self._next, actor, running, called, missing, token)
        self._next += 1
        self._waits[actor] = wait
        return wait

    def end(self, wait: Wait) -> None:
        """The wait is over, whatever it came to."""
        if self._waits.get(wait.actor) is wait:
            del self._waits[wait.actor]

    def ask(self, wait: Wait) -> list[Probe]:
        """The probes to send on behalf of a wait that still lasts."""
        if self._waits.get(wait.actor) is not wait:
            return []
        wait.round += 1
        return self._onward(wait, (), wait.round)

    def probed(self, probe: Probe) -> list[Probe | Circle]:
        """A probe has come to an actor of this process."""
        wait = self._waits.get(probe.actor)
        if wait is None or len(probe.hops) >= _LONGEST:
            return []
        home = probe.hops[0]
        if (home.proc, home.actor) != (self._proc, wait.actor):
            if wait.passed.get(home.key(), 0) >= probe.round:
                return []
            wait.passed[home.key()] = probe.round
            return list(self._onward(wait, probe.hops, probe.round))
        keys = tuple(hop.key() for hop in probe.hops)
        if home.wait != wait.id or max(keys) != keys[0]:
            return []
        if keys not in wait.seen:
            wait.seen.add(keys)
            return list(self.ask(wait))
        return [Circle(wait, probe.hops)]

    def _onward(self, wait: Wait, hops: tuple[Hop, ...], number: int) -> list[Probe]:
        own = Hop(self._proc, wait.actor, wait.id, wait.running, wait.called)
        on = (*hops, own)
        passed = {(hop.proc, hop.actor) for hop in on[1:]}
        return [
            Probe(proc, actor, on, number)
            for proc, actor in wait.missing()
            if (proc, actor) not in passed
        ]


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
