"""Attaching to workers: programs that serve as hosts, wherever they were started."""

from __future__ import annotations

import os
from time import monotonic
from typing import TYPE_CHECKING, Any

from monarch import config
from monarch._actor.future import Done, Pending
from monarch._actor.pickling import loads, pack
from monarch._actor.process import at_start, process
from monarch._actor.replies import ERROR, OK
from monarch._job import gateway
from monarch._link import secret
from monarch._link.address import is_number, parse
from monarch._link.handshake import CLIENT
from monarch._mesh.host_mesh import HostMesh, HostRef
from monarch._proc import agent, hosts
from monarch._shape import Extent, Shape
from monarch.errors import LinkError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from monarch._actor.future import Future
    from monarch._actor.process import Process
    from monarch._link.address import Address

TRUST_ALL = "trust_all_connections"
_MOST = 0.9  # of the seconds for an attempt, after which its end counts as that of its time
_NAME_PAUSE = 0.5  # seconds between two questions for the number of a name
_NAME_LEAST = 1.0  # seconds for another host to say what a name stands for


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
        ca: "trust_all_connections": every link proves that both ends hold the same secret, and off
            this host the authority of its certificates follows from that. Or a PEM file (its path,
            or its bytes) of the authorities to believe instead.
        workers: their addresses, or futures of these; each is one host. Off this host a secret
            has to be given (`MONARCH_SECRET_FILE`).
        private_key: with `ca`, a PEM file (path or bytes) of this program's certificate and key.
        name: how messages call the hosts.

    Returns:
        A host mesh with the dimension "hosts", in the order of `workers`.

    Raises:
        AddressError: an address cannot be read; UnsupportedAddressError where it is of another
            system's kind.
        SecretError: an address is off this host, and no secret was given.
        LinkError: `ca` or `private_key` is given without the other.
        ValueError: there is no worker, or one twice.
        TypeError: `workers` is no sequence of addresses.

    """
    use_security(ca, private_key)
    if isinstance(workers, str | bytes):
        raise TypeError(
            f"attach_to_workers: workers is a list of addresses, not one: [{workers!r}]"
        )
    workers = list(workers)
    for rank, worker in enumerate(workers):
        if not isinstance(worker, str) and not hasattr(worker, "get"):
            raise TypeError(
                f"attach_to_workers: workers[{rank}] is an address as text, or a future of one, "
                f"not {type(worker).__name__} {worker!r}"
            )
    if not workers:
        raise ValueError("attach_to_workers: workers is empty; give the address of each host")
    seen: dict[str, int] = {}
    for rank, worker in enumerate(workers):
        if isinstance(worker, str) and seen.setdefault(parse(worker).dial.url, rank) != rank:
            raise ValueError(
                f"attach_to_workers: workers[{rank}] and workers[{seen[parse(worker).dial.url]}] "
                f"are both {worker}; each worker is one host"
            )
    for worker in workers:
        if isinstance(worker, str) and parse(worker).dial.off_host:
            secret.current().check_given(worker)
    seconds = config.value("mesh_attach_config_timeout")
    refs = [Attached(worker, seconds, f"{name or 'hosts'} {i}") for i, worker in enumerate(workers)]
    return HostMesh(refs, Shape.dense(Extent(("hosts",), (len(refs),))), end_host)


class Attached(HostRef):
    """A host behind an address. Its process is known once the link to it is there.

    `proc` waits for that, and raises what there is no link for.
    """

    __slots__ = (
        *("_ended", "_error", "_found", "_late", "_lock", "_seconds", "_since", "_title"),
        *("_waiting", "_worker"),
    )

    def __init__(self, worker: str | Future[str], seconds: float, label: str) -> None:
        import threading  # noqa: PLC0415 - as in the gate

        self._worker = worker
        self._seconds = seconds
        self._since = 0.0
        self._late = False
        self._found = 0
        self._error: LinkError | None = None
        self._ended: threading.Event = threading.Event()
        self._lock = threading.Lock()
        self._waiting: list[Callable[[LinkError | None], object]] = []
        self.address = ""
        self.name = self._title = label
        self.node = ""
        self.public = ""
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
            self._late = True
            raise self._named(late) from error

    def _named(self, error: LinkError) -> LinkError:
        text = f"host {self._title}: {error}"
        if self._late:
            text += (
                " (it was waited for as long as the setting mesh_attach_config_timeout says, "
                f"{self._seconds:g} s)"
            )
        return LinkError(error.code, text)

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
        return Pending(inbox, 1, settle, f"host {self._title} at {self.address} to be reached")

    def lost(self) -> None:
        """The link has ended before the host said what it is."""
        self._end(LinkError("closed", f"{self.address} closed the link at once"))

    def tell(self, peer: int, told: dict[str, Any]) -> None:
        """The host has said what it is; in the control thread."""
        error = _differs(told, self.address)
        if error is None:
            self.name, self.node = told["name"], told["node"]
            self._found = peer
        self._end(error)

    def _dial(self, where: Address) -> None:
        self._since = monotonic()
        self.address = where.dial.url
        dial = where.dial
        here = process()
        if dial.any_interface:
            self._end(LinkError("unreachable", f"{dial}: name an address of the host to dial"))
        elif dial.kind != "tcp" or is_number(dial.host) or dial.host == "localhost":
            self._dial_number(dial, where.proc, self._seconds)
        else:
            here.start_thread(lambda: self._find(dial, where.proc), "monarch-names")

    def _find(self, dial: Address, proc: int) -> None:
        """Ask for the number of a name, which takes time, until there is one."""
        from time import sleep  # noqa: PLC0415 - names are rare

        until = monotonic() + self._seconds
        while True:
            try:
                found = gateway.resolve(dial, max(until - monotonic(), _NAME_LEAST))
            except LinkError as error:
                if monotonic() >= until or process().stopped:
                    self._end(error)
                    return
                sleep(_NAME_PAUSE)
            else:
                self._dial_number(found, proc, max(until - monotonic(), 0.0))
                return

    def _dial_number(self, dial: Address, proc: int, seconds: float) -> None:
        self.address = dial.url
        if dial.off_host:
            self.public = dial.url
        here = process()

        def done(peer: int, error: LinkError | None) -> None:
            if error is not None:
                self._end(error)
                return
            here.add_peer(peer, self.address)
            _attaching.setdefault(peer, []).append(self)
            beat = config.value("heartbeat_interval"), config.value("heartbeat_misses")
            here.tell(peer, "host", beat)

        _gate(here).dial(dial, done, peer=proc, role=CLIENT, seconds=seconds)

    def _end(self, error: LinkError | None) -> None:
        self._error = error
        self._late = monotonic() - self._since > _MOST * self._seconds
        with self._lock:
            self._ended.set()
            waiting, self._waiting = self._waiting, []
        named = None if error is None else self._named(error)
        for function in waiting:
            function(named)


_attaching: dict[int, list[Attached]] = {}


def _host_is(peer: int, told: dict[str, Any]) -> None:
    for attached in _attaching.pop(peer, []):
        attached.tell(peer, told)


def _host_lost(peer: int) -> None:
    for attached in _attaching.pop(peer, []):
        attached.lost()


def _listen(here: Process) -> None:
    here.on("host_is", _host_is)
    here.on_link_lost(_host_lost)


def _differs(told: dict[str, Any], address: str) -> LinkError | None:
    """What keeps this program from using a host, going by what the host says of itself."""
    own = agent.version()
    if told["version"] != own:
        return LinkError(
            "version",
            f"{address} runs monarch {told['version'] or 'from a source tree'} and this program "
            f"{own or 'one from a source tree'}: install the same release on both sides",
        )
    return None


at_start(_listen)


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


def use_security(ca: Any, private_key: Any) -> None:
    """Take the certificates that the caller gave, for all links of this process.

    Raises:
        LinkError: one of the two is missing, or a file cannot be read.

    """
    if ca == TRUST_ALL and private_key is None:
        return
    if ca == TRUST_ALL or private_key is None:
        raise LinkError(
            "certificate",
            f'ca is "{TRUST_ALL}" and private_key None, or ca names the PEM file of the '
            "authorities and private_key that of the certificate and its key",
        )
    own = _file(private_key, "private_key")
    # In the environment, since the processes of this host show the same.
    for name, path in (("CA", _file(ca, "ca")), ("CERTIFICATE", own), ("KEY", own)):
        os.environ[f"MONARCH_TLS_{name}"] = path


def _file(given: Any, what: str) -> str:
    """The path of a PEM file, made for bytes until this process ends."""
    if not isinstance(given, bytes):
        path = os.fspath(given)
        if not os.access(path, os.R_OK):
            raise LinkError("certificate", f"{what}: {path} cannot be read")
        return str(path)
    import atexit  # noqa: PLC0415 - most give none
    import tempfile  # noqa: PLC0415 - as above

    fd, made = tempfile.mkstemp(prefix="monarch-", suffix=".pem")
    atexit.register(os.unlink, made)
    with os.fdopen(fd, "wb") as file:
        file.write(given)
    return made


def lead(url: str, path: str | None) -> None:
    """Reach the address of this URL by the tunnel at a Unix socket; None for no more."""
    _gate(process()).lead(url, None if path is None else parse(f"unix:{path}"))


def _gate(here: Any) -> Any:
    return here.gate
