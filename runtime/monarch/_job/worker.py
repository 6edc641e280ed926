"""Workers: programs that serve as hosts, and start processes for whoever attaches to them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from monarch._actor import process as processes
from monarch._actor.future import Pending
from monarch._actor.pickling import pack
from monarch._actor.replies import OK
from monarch._job.attach import TRUST_ALL, use_security
from monarch._link import secret
from monarch._link.address import parse
from monarch._link.handshake import HOST
from monarch._proc import agent

if TYPE_CHECKING:
    import threading

    from monarch._actor.future import Future
    from monarch._actor.process import Process

_GRACE = 0.5  # seconds that processes of a client get to end when it frees the host


def run_worker_loop_forever(*, address: str, ca: Any, private_key: Any = None) -> NoReturn:
    """Serve as a host at this address until a client shuts the host down; then exit, status 0.

    Clients attach by `attach_to_workers`. The processes that one asks for end with it, and the next
    client finds the host free. SIGTERM ends it as a client's `shutdown()` does.

    Args:
        address: `ipc://@name`, `ipc://path`, `unix:path` or `tcp://address:port`, where "*" is all
            interfaces; `dial@bind` to be dialled at another address than the one bound;
            `name@address` to have the proc id of that name. Off this host a secret has to be
            given (`MONARCH_SECRET_FILE`).
        ca: "trust_all_connections", or the authorities to believe, as in `attach_to_workers`.
        private_key: with `ca`, a PEM file of the certificate and its key.

    Raises:
        AddressError: the address cannot be read or listened on; UnsupportedAddressError where it
            is of a kind that is not served.
        SecretError: the address is off this host, and no secret was given.
        RuntimeError: this process serves as a host already.

    """
    run_worker_loop_until_shutdown(address=address, ca=ca, private_key=private_key)
    sys.exit(0)


def run_worker_loop_until_shutdown(*, address: str, ca: Any, private_key: Any = None) -> None:
    """As `run_worker_loop_forever`, but return when the host was shut down."""
    service = _Service(address, ca, private_key)
    with _on_terminate(service.ended):
        service.ended.wait()
    service.close()


def start_worker_loop_forever(*, address: str, ca: Any, private_key: Any = None) -> Future[None]:
    """As `run_worker_loop_forever`, in the background: the host is reachable when it returns.

    A shutdown by a client ends this process with status 0. The future is done by then; it may be
    dropped.
    """
    service = _Service(address, ca, private_key)
    inbox = service.here.engine.open_inbox(False)
    here, number = service.here, inbox.id

    def run() -> None:
        service.ended.wait()
        here.engine.post(here.id, number, 0, OK, pack(None), None)
        service.close()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(0)

    here.start_thread(run, "monarch-host")
    return Pending(inbox, 1, lambda _inbox: None, f"the host at {address} to be shut down")


class _Service:
    """What makes this process a host."""

    def __init__(self, address: str, ca: Any, private_key: Any) -> None:
        import threading  # noqa: PLC0415 - as everything that waits

        use_security(ca, private_key)
        where = parse(address)
        here = processes.running_process()
        if here is None:
            here = processes.start_program(where.proc or None)
        elif where.proc and here.id != where.proc:
            raise RuntimeError(
                f"{address!r} asks for proc id {where.proc:016x}, and this program has begun to "
                f"use the runtime as {here.id:016x}; start the worker loop first"
            )
        self.here: Process = here
        self.ended: threading.Event = threading.Event()
        gate = here.gate
        if gate is None or gate.role == HOST:
            raise RuntimeError(f"this process serves as a host already; cannot serve at {address}")
        here.on("free_host", self._free)
        here.on("end_host", lambda _client, _body: self.ended.set())
        bound = gate.listen(where)
        gate.role = HOST
        here.address = self.address = bound.dial.url

    def close(self) -> None:
        self.here.shutdown()

    @staticmethod
    def _free(client: int, _body: object) -> None:
        from monarch._proc import local  # noqa: PLC0415 - most are asked for nothing

        local.stop(agent.asked_by(client), "the host was freed", _GRACE)


class Serving:
    """Serve as a host within a `with` block, which gets what `ended` is set in by a client.

    `address` there is where clients find it. SIGTERM sets `ended` as well.
    """

    def __init__(self, address: str) -> None:
        self._service = _Service(address, TRUST_ALL, None)
        self._terminated = _on_terminate(self._service.ended)

    def __enter__(self) -> _Service:
        self._terminated.__enter__()
        return self._service

    def __exit__(self, *error: object) -> None:
        self._terminated.__exit__(*error)
        self._service.close()


class _on_terminate:  # noqa: N801 - used as a function
    """End in order on SIGTERM, where nobody else takes care of it."""

    def __init__(self, ended: threading.Event) -> None:
        self._ended = ended
        self._before: Any = None

    def __enter__(self) -> None:
        import signal  # noqa: PLC0415 - workers only
        import threading  # noqa: PLC0415

        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            self._before = signal.signal(signal.SIGTERM, lambda *_: self._ended.set())

    def __exit__(self, *_error: object) -> None:
        if self._before is not None:
            import signal  # noqa: PLC0415 - as above

            signal.signal(signal.SIGTERM, self._before)


def main() -> None:
    """Serve as a host of a `ProcessJob`: arguments are the address and a descriptor.

    The descriptor ends with the program that made the job. It carries a byte if the job was stored,
    and is then to outlive that program.
    """
    address, lease = sys.argv[-2], int(sys.argv[-1])
    secret.current()  # before anything is started that could inherit the descriptor's number
    os.set_inheritable(lease, False)
    service = _Service(address, TRUST_ALL, None)

    def read() -> None:
        kept = os.read(lease, 1)
        service.here.forget(lease)
        os.close(lease)
        if not kept:
            service.ended.set()

    service.here.once_readable(lease, read)
    with _on_terminate(service.ended):
        service.ended.wait()
    service.close()
