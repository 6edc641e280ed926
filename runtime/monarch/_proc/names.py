"""What names of hosts stand for where a host agent is: asked where they are not known here."""

from __future__ import annotations

from monarch._actor.process import at_start
from monarch._link.address import parse
from monarch._link.sockets import resolve
from monarch.errors import LinkError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from monarch._actor.process import Process
    from monarch._link.address import Address

    Told = Callable[[str, str], object]

__all__ = ["found_by"]

_asked: dict[tuple[int, str], list[Told]] = {}  # by agent and the URL with the name


def found_by(here: Process, agent: int, address: Address, seconds: float) -> Address:
    """The same address with a number for its host, as the agent knows it.

    Raises:
        LinkError: it knows none, or has not said so within `seconds`.

    """
    from threading import Event  # noqa: PLC0415 - names that are not known here are rare

    ended = Event()
    found = ["", f"the host agent has not said within {seconds:.1f} s what it stands for"]

    def told(url: str, error: str) -> None:
        found[:] = url, error
        ended.set()

    _asked.setdefault((agent, address.url), []).append(told)
    here.tell(agent, "name", address.url)
    ended.wait(seconds)
    url, error = found
    if not url:
        raise LinkError("unreachable", f"{address} (by way of the host attached to): {error}")
    return parse(url)


def _name(here: Process, peer: int, url: str) -> None:
    """At an agent: asking the name service takes time."""

    def find() -> None:
        try:
            found, error = resolve(parse(url)).url, ""
        except LinkError as failed:
            found, error = "", str(failed)
        if not here.stopped:
            here.tell(peer, "named", (url, found, error))

    here.start_thread(find, "monarch-names")


def _named(peer: int, body: tuple[str, str, str]) -> None:
    url, found, error = body
    for told in _asked.pop((peer, url), []):
        told(found, error)


def _listen(here: Process) -> None:
    here.on("name", lambda peer, url: _name(here, peer, url))
    here.on("named", _named)


at_start(_listen)
