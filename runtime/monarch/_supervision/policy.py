"""Which ranks of a mesh start again after deaths, and when it is given up. Pure: no clock.

The arithmetic is OTP's: each death that is answered by a restart counts once, however many ranks
start again for it, and more than `max` of them within `within` seconds end the group. Deaths that
are heard of together are answered together; a rank that starts again anyway is not counted.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from monarch._restart import Restart

__all__ = ["GiveUp", "Group", "Plan"]


class Plan:
    """Ranks to stop, in this order, and then to start, in this order, after `delay` seconds."""

    __slots__ = ("delay", "start", "stop")

    def __init__(self, stop: tuple[int, ...], start: tuple[int, ...], delay: float) -> None:
        self.stop = stop
        self.start = start
        self.delay = delay

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return (self.stop, self.start, self.delay) == (other.stop, other.start, other.delay)

    __hash__ = None  # type: ignore[assignment]  # compared by tests only

    def __repr__(self) -> str:
        return f"Plan(stop={self.stop}, start={self.start}, delay={self.delay:g})"


class GiveUp:
    """The group ends: its `child` died once too often. `stop` are the others, in this order."""

    __slots__ = ("child", "restarts", "stop")

    def __init__(self, child: int, restarts: int, stop: tuple[int, ...]) -> None:
        self.child = child
        self.restarts = restarts
        self.stop = stop

    def __repr__(self) -> str:
        return f"GiveUp(child={self.child}, restarts={self.restarts}, stop={self.stop})"


class Group:
    """The ranks of one mesh, `children` in the order in which they were started."""

    def __init__(self, restart: Restart, children: Iterable[int]) -> None:
        self.restart = restart
        self._children = tuple(children)
        self._gone: set[int] = set()
        self._times: list[float] = []

    def ended(self, deaths: Iterable[tuple[int, bool]], now: float) -> Plan | GiveUp | None:
        """Ranks have ended by themselves, each (rank, whether it ended well), in this order."""
        starts: set[int] = set()
        dead: set[int] = set()
        for child, well in deaths:
            if child in starts:
                dead.add(child)
                continue
            if not self._comes_back(well):
                self._gone.add(child)
                continue
            dead.add(child)
            self._count(now)
            if len(self._times) > self.restart.max:
                return self._give_up(child, dead)
            starts.update(self._with(child))
        if not starts:
            return None
        stop = tuple(one for one in self._backwards() if one in starts and one not in dead)
        start = tuple(one for one in self._children if one in starts)
        self._gone -= starts
        return Plan(stop, start, self._delay())

    def _comes_back(self, well: bool) -> bool:
        kind = self.restart.kind
        return kind == "permanent" or (kind == "transient" and not well)

    def _count(self, now: float) -> None:
        oldest = now - self.restart.within
        self._times = [time for time in self._times if time >= oldest]
        self._times.append(now)

    def _with(self, child: int) -> tuple[int, ...]:
        if self.restart.strategy == "one-for-one":
            return (child,)
        if self.restart.strategy == "one-for-all":
            return self._children
        return self._children[self._children.index(child) :]

    def _delay(self) -> float:
        again = len(self._times) - 2
        if again < 0 or not self.restart.backoff:
            return 0.0
        return min(self.restart.backoff * 2.0 ** min(again, 64), self.restart.within)

    def _give_up(self, child: int, dead: set[int]) -> GiveUp:
        stop = tuple(one for one in self._backwards() if one not in dead)
        self._gone.update(self._children)
        return GiveUp(child, len(self._times) - 1, stop)

    def _backwards(self) -> list[int]:
        """Those that run, the last started first."""
        return [child for child in reversed(self._children) if child not in self._gone]
