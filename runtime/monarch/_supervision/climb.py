"""Which owner is asked about a death, and who is next when it does not handle it. Pure.

Every process holds one `Climb` for the actors that live in it. A failure arrives for an owner and
waits there until the owner takes it. Each owner is asked once per death. Not
handled, it goes to the owner's owner, here or in another process. Actor 0 is the code of a process
that runs in no actor; that of the client has no owner, there the climb ends.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from monarch._failure import MeshFailure

__all__ = ["ROOT", "Ask", "Climb", "Tell", "together"]

ROOT = 0
"""The id of a process's own code, as an owner."""
_REMEMBERED = 4096


class Ask:
    """The owner `actor` of this process has failures to take."""

    __slots__ = ("actor",)

    def __init__(self, actor: int) -> None:
        self.actor = actor


class Tell:
    """The failure goes to an owner in another process."""

    __slots__ = ("actor", "failure", "proc")

    def __init__(self, proc: int, actor: int, failure: MeshFailure) -> None:
        self.proc = proc
        self.actor = actor
        self.failure = failure


class Climb:
    """The failures on their way through one process."""

    def __init__(
        self,
        proc: int,
        root: tuple[int, int] | None = None,
        name: str = "",
        find: Callable[[int], tuple[str, tuple[int, int]] | None] | None = None,
    ) -> None:
        """`root`: the (proc, actor) that owns this process; None in a client.

        `find(actor)` gives the name and owner of an actor that lives here, None for any other; with
        it, actors need not be told by `adopt`.
        """
        self._proc = proc
        self._find = find
        self._owners: dict[int, tuple[int, int] | None] = {ROOT: root}
        self._names: dict[int, str] = {ROOT: name}
        self._waiting: dict[int, list[MeshFailure]] = {}
        self._asked: dict[tuple[int, str], None] = {}

    def adopt(self, actor: int, name: str, owner: tuple[int, int]) -> None:
        """An actor lives here from now on; `name` is how people know it."""
        self._owners[actor] = owner
        self._names[actor] = name

    def leave(self, actor: int) -> list[Ask | Tell]:
        """An actor has ended; what waits for it climbs on."""
        waiting = self._waiting.pop(actor, [])
        owner = self._owners.pop(actor, None)
        self._names.pop(actor, None)
        return [effect for failure in waiting for effect in self._pass_on(owner, failure)]

    def arrived(self, actor: int, failure: MeshFailure) -> list[Ask | Tell]:
        """A failure for an owner that lives here. One that has ended stands for its process."""
        if actor not in self._owners and not self._known(actor):
            actor = ROOT
        key = (actor, failure.death)
        if failure.death:
            if key in self._asked:
                return []
            self._asked[key] = None
            while len(self._asked) > _REMEMBERED:
                del self._asked[next(iter(self._asked))]
        waiting = self._waiting.setdefault(actor, [])
        waiting.append(failure)
        return [Ask(actor)] if len(waiting) == 1 else []

    def waits(self, actor: int) -> list[MeshFailure]:
        """What `take` would give; it goes on waiting."""
        return self._waiting.get(actor, [])

    def take(self, actor: int) -> list[MeshFailure]:
        """What the owner is to be asked about now, oldest first."""
        return self._waiting.pop(actor, [])

    def passed(self, actor: int, failure: MeshFailure, remark: str = "") -> list[Ask | Tell]:
        """The owner did not handle it; `remark` says more than that where there is more."""
        name = self._names.get(actor, "")
        if name:
            by = f"{name} ({remark})" if remark else name
            failure = failure.replace(passed_by=(*failure.passed_by, by))
        return self._pass_on(self._owners.get(actor), failure)

    def _known(self, actor: int) -> bool:
        found = None if self._find is None else self._find(actor)
        if found is not None:
            self.adopt(actor, *found)
        return found is not None

    def _pass_on(self, owner: tuple[int, int] | None, failure: MeshFailure) -> list[Ask | Tell]:
        if owner is None:
            return []
        proc, actor = owner
        if proc == self._proc:
            return self.arrived(actor, failure)
        return [Tell(proc, actor, failure)]


def together(failures: list[MeshFailure]) -> list[MeshFailure]:
    """For a report: the failures, where one fault in several ranks of a mesh is one of them."""
    told: list[MeshFailure] = []
    for failure in failures:
        for index, other in enumerate(told):
            if _same_fault(other, failure):
                told[index] = _merged(other, failure)
                break
        else:
            told.append(failure)
    return told


def _same_fault(one: MeshFailure, other: MeshFailure) -> bool:
    """Whether two failures are equal but for the rank."""
    return (
        bool(one.causes)
        and one.kind == other.kind
        and one.mesh_name == other.mesh_name
        and one.endpoint == other.endpoint
        and [(c.type, c.text) for c in one.causes] == [(c.type, c.text) for c in other.causes]
    )


def _merged(one: MeshFailure, other: MeshFailure) -> MeshFailure:
    """Both as one failure: all ranks; process and host only where they are the same."""
    return one.replace(
        ranks=(*one.ranks, *other.ranks),
        pid=one.pid if one.pid == other.pid else None,
        host=one.host if one.host == other.host else "",
        node_id=one.node_id if one.node_id == other.node_id else "",
    )
