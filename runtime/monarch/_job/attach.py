"""Attaching to workers: programs that serve as hosts, wherever they were started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from monarch import config
from monarch._actor.future import Done, Pending
from monarch._actor.pickling import loads, pack
from monarch._actor.process import process, running_process
from monarch._actor.replies import ERROR, OK
from monarch._link.address import parse
from monarch._link.handshake import CLIENT
from monarch._mesh.host_mesh import HostMesh, HostRef
from monarch._proc import hosts
from monarch._shape import Extent, Shape
from monarch.errors import LinkError, UnsupportedAddressError

if TYPE_CHECKING:
    import os
    import threading
    from collections.abc import Callable, Sequence

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

    Returns at once; the workers may start later. `spawn_procs` on hosts that have not been reached
    waits for them, at most as long as the setting `mesh_attach_config_timeout` says, and raises a
    `LinkError` that names each worker to which there is no link by then. An event loop awaits
    `initialized` first, whose error is the same. `stop()` does not wait for such workers.

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
        self._waiting: list[Callable[[LinkError | None], object]] = []
        self.address = ""
        self.name = label
        self.node = ""
        if isinstance(worker, str):
            self._dial(parse(worker))

    @property
    def proc(self) -> int:  # type: ignore[override]  # the class above knows it from the start
        if not self._found:
            if not self.address:
                self._dial(parse(self._told()))
            self._ended.wait()
            if self._error is not None:
                raise self._named(self._error)
        return self._found

    def known(self) -> bool:
        """Whether there is a link to it."""
        return bool(self._found)

    def dialled(self) -> bool:
        """Whether there is a link or will be one, as far as its address has been told."""
        if not self.address and not isinstance(self._worker, str) and self._worker.done():
            self._dial(parse(self._told()))
        return bool(self.address)

    def _told(self) -> str:
        """The address, where that is a future's to tell."""
        assert not isinstance(self._worker, str)  # noqa: S101 - dialled at once
        try:
            return self._worker.get(self._seconds)
        except TimeoutError as error:
            late = LinkError("timeout", f"the future of its address told none: {error}")
            raise self._named(late) from error

    def _named(self, error: LinkError) -> LinkError:
        return LinkError(
            error.code,
            f"host {self.name}: {error} (it was waited for as long as the setting "
            f"mesh_attach_config_timeout says, {self._seconds:g} s)",
        )

    def then(self, function: Callable[[LinkError | None], object]) -> None:
        """Call `function(None)` once there is a link, or with why there will be none."""
        with self._lock:
            if not self._ended.is_set():
                self._waiting.append(function)
                return
        function(None if self._error is None else self._named(self._error))

    def reached(self) -> Future[Any]:
        """A future that is done once there is a link to the host."""
        here = process()
        inbox = here.engine.open_inbox(False)
        number = inbox.id

        def settle(_inbox: Any) -> None:
            _ = self.proc

        if not self.address:
            _ = self.proc
        self.then(lambda _error: here.engine.post(here.id, number, 0, OK, b"", None))
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
            named = None if error is None else self._named(error)
            for function in waiting:
                function(named)

        _gate(here).dial(where.dial, done, peer=where.proc, role=CLIENT, seconds=self._seconds)


def end_host(host: HostRef, last: bool) -> Future[Any]:
    """Free what this program has on a host; with `last`, end the program that serves it.

    The future is done once the host has answered or, with `last`, is gone. One that has not been
    reached yet runs nothing of this program; with `last` it is ended when it is, and the future's
    error says why it was not.
    """
    here = process()
    if not last:
        return here.asking(host.proc, "free_host", None) if host.known() else Done(None)
    if isinstance(host, Attached) and not host.dialled():
        return Done(None)
    inbox = here.engine.open_inbox(False)
    number = inbox.id

    def reached(error: LinkError | None) -> None:
        if error is not None:
            here.engine.post(here.id, number, 0, ERROR, pack(error), None)
            return
        hosts.on_host_lost(host.proc, lambda: here.engine.post(here.id, number, 0, OK, b"", None))
        here.tell(host.proc, "end_host", None)

    def settle(inbox: Any) -> None:
        _rank, status, data, _buffers = inbox.get(0)
        if status:
            raise loads(data)

    if isinstance(host, Attached):
        host.then(reached)
    else:
        reached(None)
    return Pending(inbox, 1, settle, f"host {host.name} to end")


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
