"""What is done about a death without asking: the policy given at a spawn, and an owner's decision.

Plain values. Which process or actor starts again, and when it has been often enough, is worked out
in `_supervision.policy`.
"""

from __future__ import annotations

__all__ = ["KINDS", "STRATEGIES", "Decision", "Restart"]

STRATEGIES = ("one-for-one", "one-for-all", "rest-for-one")
KINDS = ("permanent", "transient", "temporary")


class Restart:
    """How the ranks of a mesh start again by themselves, as Erlang's supervisors have it.

    Attributes:
        max: restarts within `within` seconds that are put up with; one more ends the whole mesh,
            and its owner is told of the failure. 0: the first death ends it.
        within: the seconds in which restarts are counted.
        backoff: seconds to wait before a restart, from the second one in `within` on; twice as long
            each time, and never longer than `within`.
        strategy: what starts again with a rank that died. "one-for-one": that rank alone;
            "one-for-all": all of them; "rest-for-one": that rank and those after it. The others
            are stopped first, the last rank first.
        kind: "permanent" ranks always start again; "transient" ones unless they ended well (a
            process with exit code 0); "temporary" ones never, and their death is no failure.
        shutdown: seconds that a rank gets to end when it is stopped for a restart; what is left of
            its process then is killed.

    Raises:
        ValueError: a number is negative, or a strategy or kind is none of these.
        TypeError: a number is none.

    """

    __slots__ = ("backoff", "kind", "max", "shutdown", "strategy", "within")

    def __init__(
        self,
        max: int = 3,  # noqa: A002 - the public name
        within: float = 60.0,
        backoff: float = 0.0,
        *,
        strategy: str = "one-for-one",
        kind: str = "permanent",
        shutdown: float = 5.0,
    ) -> None:
        if not isinstance(max, int) or isinstance(max, bool):
            raise TypeError(f"Restart: max counts restarts, it is an integer, not {max!r}")
        numbers = {"max": max, "within": within, "backoff": backoff, "shutdown": shutdown}
        for name, value in numbers.items():
            if not isinstance(value, (int, float)):
                raise TypeError(f"Restart: {name} is a number, not {value!r}")
            if not value >= 0:
                raise ValueError(f"Restart: {name} is 0 or more, not {value!r}")
        _one_of("strategy", strategy, STRATEGIES)
        _one_of("kind", kind, KINDS)
        self.max = max
        self.within = float(within)
        self.backoff = float(backoff)
        self.strategy = strategy
        self.kind = kind
        self.shutdown = float(shutdown)

    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Restart):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return (
            f"Restart(max={self.max}, within={self.within:g}, backoff={self.backoff:g}, "
            f"strategy={self.strategy!r}, kind={self.kind!r}, shutdown={self.shutdown:g})"
        )


class Decision:
    """What an owner decides about a failure; `__supervise__` may return one in place of a bool.

    Attributes:
        HANDLED: the owner has done what there was to do; as True.
        RESTART: what failed starts again, by the policy of its mesh, or else by `Restart()`.
        ESCALATE: the owner's owner is to be asked; as False.

    """

    __slots__ = ("name",)

    HANDLED: Decision
    RESTART: Decision
    ESCALATE: Decision

    def __init__(self, name: str) -> None:
        self.name = name

    def __bool__(self) -> bool:
        return self.name != "escalate"

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __reduce__(self) -> str:
        return f"Decision.{self.name.upper()}"


Decision.HANDLED = Decision("handled")
Decision.RESTART = Decision("restart")
Decision.ESCALATE = Decision("escalate")


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"Restart: {name} is one of {', '.join(known)}, not {value!r}")
