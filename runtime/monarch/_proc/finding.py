"""How processes of different hosts find each other where nobody told them an address.

Processes of a host that serves have its address: whoever knows it can dial them. Others, the
program that attached and what runs on its host, need not be reachable: they are asked to dial. So
a process that finds a peer neither at an address nor on its own host asks its owner, which knows
where it is, or has it call back, or asks its own owner; the owner itself is asked by way of the
host agent, which it has dialled.
"""

from __future__ import annotations

from monarch._actor.process import at_start
from monarch._link.address import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from monarch._actor.process import Process
    from monarch.errors import LinkError

    Wanted = tuple[int, int, str]  # the process sought, who seeks it, and where that can be dialled

__all__ = ["belong", "published"]

_owner = 0  # who asked for this process


def belong(owner: int) -> None:
    """Note who asked for this process, and is asked for others."""
    global _owner  # noqa: PLW0603 - what a process is, it is for good
    _owner = owner


def published(here: Process, address: str) -> str:
    """Where other hosts reach a process that is at `address`, empty for one of this host's."""
    return address or ("" if here.gate is None else here.gate.public)


def _absent(here: Process, peer: int) -> None:
    public = "" if here.gate is None else here.gate.public
    if not public or here.parent is None or not _owner:
        return  # a host of its own: who is not here is gone, or calls
    wanted = (peer, here.id, public)
    if peer == _owner:
        here.tell(here.parent, "call_back", wanted)
    else:
        here.tell(_owner, "locate", wanted)


def _call_back(here: Process, wanted: Wanted) -> None:
    """At the agent: the one sought may have a link to here."""
    if here.engine.has_link(wanted[0]):
        here.tell(wanted[0], "dial", wanted[1:])


def _locate(here: Process, wanted: Wanted) -> None:
    """At an owner."""
    peer, seeker, url = wanted
    known = here.addresses.get(peer)
    if known:
        here.add_peer(seeker, url)
        here.tell(seeker, "located", (peer, known))
    elif here.engine.has_link(peer):
        here.tell(peer, "dial", (seeker, url))
    elif _owner and here.parent is not None:
        here.tell(_owner, "locate", wanted)


def _dial(here: Process, seeker: tuple[int, str]) -> None:
    """Somebody who cannot dial this process wants a link to it."""

    def done(_peer: int, _error: LinkError | None) -> None:
        """Who seeks it gives up by itself."""

    here.add_peer(*seeker)
    if here.gate is not None:
        here.gate.dial(parse(seeker[1]), done, peer=seeker[0])


def _located(here: Process, found: tuple[int, str]) -> None:
    here.add_peer(*found)
    if here.gate is not None and found[1] != here.gate.public:
        here.gate.dial(parse(found[1]), lambda _peer, _error: None, peer=found[0])


def _listen(here: Process) -> None:
    here.on_absent(lambda peer: _absent(here, peer))
    here.on("call_back", lambda _peer, body: _call_back(here, body))
    here.on("locate", lambda _peer, body: _locate(here, body))
    here.on("dial", lambda _peer, body: _dial(here, body))
    here.on("located", lambda _peer, body: _located(here, body))


at_start(_listen)
