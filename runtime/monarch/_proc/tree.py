"""The links between host agents that calls to meshes go down.

Who starts processes on several hosts reaches each agent itself. Where there are more hosts than
branches, it has agents make links to others, and uses each once it is told to be there.
"""

from __future__ import annotations

import os

from monarch import config
from monarch._actor.process import at_start
from monarch._link.address import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from monarch._actor.process import Process
    from monarch.errors import LinkError

__all__ = ["plant"]

_asked: set[tuple[int, int]] = set()  # links that agents were asked for
_below: dict[int, set[int]] = {}  # at an agent: by the other one, who wants to know of the link


def plant(here: Process, host: int, procs: Iterable[int]) -> None:
    """Let what goes to many go to these processes by way of the agent of their host."""
    if not here.is_far(host):
        return  # what is on this host is as near as its agent
    for proc in procs:
        here.engine.set_relay(proc, host)
    beat = config.value("heartbeat_interval"), config.value("heartbeat_misses")
    for source, to in here.engine.wanted_edges():
        address = here.addresses.get(to)
        if address and (source, to) not in _asked:
            _asked.add((source, to))
            here.tell(source, "reach", (to, address, *beat))


def _reach(here: Process, client: int, wanted: tuple[int, str, float, int]) -> None:
    """At an agent: make a link to another one."""
    to, address, heartbeat, misses = wanted
    _below.setdefault(to, set()).add(client)

    def done(_peer: int, error: LinkError | None) -> None:
        if not here.stopped:
            here.tell(client, "reaches", (to, error is None))

    here.add_peer(to, address)
    here.engine.set_heartbeat(to, heartbeat, misses)
    if here.engine.has_link(to) or here.gate is None:
        here.tell(client, "reaches", (to, here.engine.has_link(to)))
    else:
        here.gate.dial(parse(address), done, peer=to)


def _link_lost(here: Process, peer: int) -> None:
    for client in _below.pop(peer, ()):
        here.tell(client, "reaches", (peer, False))


def _reaches(here: Process, source: int, told: tuple[int, bool]) -> None:
    to, linked = told
    here.engine.set_edge(source, to, linked)
    if not linked:
        _asked.discard((source, to))  # with the next processes it is tried again


def _listen(here: Process) -> None:
    here.on("reach", lambda client, body: _reach(here, client, body))
    here.on("reaches", lambda source, body: _reaches(here, source, body))
    here.on_link_lost(lambda peer: _link_lost(here, peer))


def _forget() -> None:
    _asked.clear()
    _below.clear()


at_start(_listen)
os.register_at_fork(after_in_child=_forget)
