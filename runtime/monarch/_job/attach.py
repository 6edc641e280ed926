"""Attaching to workers: programs that serve as hosts, wherever they were started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from monarch import config
from monarch._actor.future import Pending
from monarch._actor.process import process, running_process
from monarch._actor.replies import OK
from monarch._link.address import parse
from monarch._link.handshake import CLIENT
from monarch._mesh.host_mesh import HostMesh, HostRef
from monarch._proc import hosts
from monarch._shape import Extent, Shape
from monarch.errors import LinkError, UnsupportedAddressError

if TYPE_CHECKING:
    import os
    import threading
    from collections.abc import Sequence

    from monarch._actor.future import Future
    from monarch._link.address import Address

TRUST_ALL = "trust_all_connections"


def attach_to_workers(
    *,
    ca: str | bytes | os.PathLike[str],
    workers: Sequence[str | Future[str]],
    private_key: str | bytes | os.PathLike[str] | None = None,
    name: str | None = None,
) -> HostMesh:
    """The hosts on which `run_worker_loop_forever` serves at these addresses.

    Returns at once; the workers may start later. What is asked of the hosts waits for them, at most
    as long as the setting `mesh_attach_config_timeout` says, and so does `initialized`.

    Args:
        ca: "trust_all_connections". Nothing else is there before TLS is; every link proves that
            both ends hold the same secret all the same.
        workers: their addresses, or futures of these; each is one host.
        private_key: None, as long as there is no TLS.
        name: how messages call the hosts.

    Returns:
        A host mesh with the dimension "hosts", in the order of `workers`.

    Raises:
        AddressError: an address cannot be read; UnsupportedAddressError where it leaves this host.
        ValueError: there is no worker, or one twice.

    """
    check_security(ca, private_key)
    if not workers:
        raise ValueError("attach_to_workers: workers is empty; give the address of each host")
    seen: dict[str, int] = {}
    for rank, worker in enumerate(workers):
        if isinstance(worker, str) and seen.setdefault(parse(worker).dial.url, rank) != rank:
            raise ValueError(
                f"attach_to_workers: workers[{rank}] and workers[{seen[parse(worker).dial.url]}] "
                f"are both {worker}; each worker is one host"
            )
    seconds = config.value("mesh_attach_config_timeout")
    refs = [Attached(worker, seconds, f"{name or 'hosts'} {i}") for i, worker in enumerate(workers)]
    return HostMesh(refs, Shape.dense(Extent(("hosts",), (len(refs),))), end_host)


def attach(addr: str) -> None:
    """Link this program to the process that listens at `addr`, before it uses anything else.

    Raises:
        RuntimeError: the runtime is in use already.
        LinkError: nothing answers there, or it refuses.

    """
    where = parse(addr)
    if running_process() is not None:
        raise RuntimeError(
            f"attach({addr!r}) comes too late: this program has begun to use the runtime; call it "
            "first"
        )
    seconds = config.value("mesh_attach_config_timeout")
    here = process()
    peer = _gate(here).connect(where.dial, peer=where.proc, role=CLIENT, seconds=seconds)
    here.add_peer(peer, where.dial.url)


class Attached(HostRef):
    """A host behind an address. Its process is known once the link to it is there.

    `proc` waits for that, and raises what there is no link for.
    """

    __slots__ = ("_ended", "_error", "_found", "_lock", "_seconds", "_waiting", "_worker")

    def __init__(self, worker: str | Future[str], seconds: float, label: str) -> None:
        import threading  # noqa: PLC0415 - as in the gate

        self._worker = worker
        self._seconds = seconds
        self._found = 0
        self._error: LinkError | None = None
        self._ended: threading.Event = threading.Event()
        self._lock = threading.Lock()
        self._waiting: list[int] = []
        self.address = ""
        self.name = label
        self.node = ""
        if isinstance(worker, str):
            self._dial(parse(worker))

    @property
    def proc(self) -> int:  # type: ignore[override]  # the class above knows it from the start
        if not self._found:
            if not self.address:
                assert not isinstance(self._worker, str)  # noqa: S101 - dialled at once
                self._dial(parse(self._worker.get(self._seconds)))
            self._ended.wait()
            if self._error is not None:
                raise LinkError(self._error.code, f"host {self.name}: {self._error}")
        return self._found

    def reached(self) -> Future[Any]:
        """A future that is done once there is a link to the host."""
        here = process()
        inbox = here.engine.open_inbox(False)
        number = inbox.id

        def settle(_inbox: Any) -> None:
            _ = self.proc

        if not self.address:
            _ = self.proc
        with self._lock:
            if not self._ended.is_set():
                self._waiting.append(number)
                number = 0
        if number:
            here.engine.post(here.id, number, 0, OK, b"", None)
        return Pending(inbox, 1, settle, f"host {self.name} at {self.address} to be reached")

    def _dial(self, where: Address) -> None:
        self.address = where.dial.url
        here = process()

        def done(peer: int, error: LinkError | None) -> None:
            if error is None:
                here.add_peer(peer, self.address)
                self._found = peer
            self._error = error
            with self._lock:
                self._ended.set()
                waiting, self._waiting = self._waiting, []
            for number in waiting:
                here.engine.post(here.id, number, 0, OK, b"", None)

        _gate(here).dial(where.dial, done, peer=where.proc, role=CLIENT, seconds=self._seconds)


def end_host(host: HostRef, last: bool) -> Future[Any]:
    """Free what this program has on a host; with `last`, end the program that serves it.

    The future is done once the host has answered or, with `last`, is gone.
    """
    here = process()
    if not last:
        return here.asking(host.proc, "free_host", None)
    inbox = here.engine.open_inbox(False)
    number = inbox.id
    hosts.on_host_lost(host.proc, lambda: here.engine.post(here.id, number, 0, OK, b"", None))
    here.tell(host.proc, "end_host", None)
    return Pending(inbox, 1, lambda _inbox: None, f"host {host.name} to end")


def check_security(ca: Any, private_key: Any) -> None:
    """Refuse certificates, which are not there yet.

    Raises:
        UnsupportedAddressError: there are some.

    """
    if private_key is not None or ca != TRUST_ALL:
        raise UnsupportedAddressError(
            f'ca must be "{TRUST_ALL}" and private_key None: links by TLS are not in this release. '
            "On one host every link proves that both ends hold the secret of this user, or that of "
            "MONARCH_SECRET_FILE"
        )


def _gate(here: Any) -> Any:
    return here.gate
