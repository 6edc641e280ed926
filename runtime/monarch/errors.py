"""Errors of `monarch`. Messages say what, where, what was wanted and what to do.

Each keeps its constructor's arguments as its own, so that it survives pickling.
"""

from __future__ import annotations

from monarch._failure import MeshFailure, ranks_text

__all__ = [
    "ActorCrashError",
    "ActorError",
    "AddressError",
    "ConflictError",
    "DeadlockError",
    "FrameError",
    "GpuError",
    "JobError",
    "JobStateError",
    "LabelError",
    "LinkError",
    "MonarchError",
    "RankError",
    "RemoteError",
    "RuntimeLibraryError",
    "SecretError",
    "StoppedError",
    "SupervisionError",
    "UnsupportedAddressError",
]


class MonarchError(Exception):
    """Root of the errors that this package raises on purpose."""


class ConflictError(MonarchError, ImportError):
    """Two distributions that install this package are in one environment."""


class RuntimeLibraryError(MonarchError, ImportError):
    """The GPU runtime library is missing, of another release, or in the process twice."""


class GpuError(MonarchError, RuntimeError):
    """A GPU operation that failed, or one this machine or distribution cannot do.

    `code` is one of invalid_argument, library_missing, symbol_missing, unsupported, no_device,
    out_of_memory, peer_failed and device_failure; `context` is what was being done.
    """

    def __init__(self, message: str, code: str, context: str = "") -> None:
        super().__init__(message, code, context)
        self.message = message
        self.code = code
        self.context = context

    def __str__(self) -> str:
        return f"{self.context}: {self.message}" if self.context else self.message


class FrameError(MonarchError, ValueError):
    """Bytes that are no frame, or a frame that cannot be.

    `code` is one of malformed, version, limit, corrupt, sequence and argument.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


class SecretError(MonarchError, OSError):
    """The secret that authenticates links is missing, unsafe or unreadable."""


class AddressError(MonarchError, ValueError):
    """Text that is no address, or an address that cannot be used here."""


class UnsupportedAddressError(AddressError, NotImplementedError):
    """An address of a kind that this release does not serve."""


class JobError(MonarchError, RuntimeError):
    """A job whose hosts cannot be had, or are gone."""


class JobStateError(JobError, ValueError):
    """A job's state file that cannot be written or read."""


class LabelError(MonarchError, KeyError, ValueError):
    """A dimension that an extent, a point or a shape does not have."""

    def __str__(self) -> str:
        return Exception.__str__(self)


class RankError(MonarchError, IndexError, ValueError):
    """A rank or an index outside of an extent, a shape or the values by rank."""


class LinkError(MonarchError, ConnectionError, RuntimeError):
    """A link to another process that could not be made.

    `code` is one of malformed, version, secret, channel, identity, role, duplicate, full, user,
    closed, timeout and unreachable.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


class ActorError(MonarchError):
    """An endpoint raised.

    `exception` is what it raised (a `RemoteError` where that could not be sent), and
    `exception_formatted` its traceback on the far side, the frames of the program's own code.
    """

    def __init__(
        self,
        exception: BaseException,
        message: str = "A remote actor call has failed.",
        exception_formatted: str = "",
    ) -> None:
        super().__init__(exception, message, exception_formatted)
        self.exception = exception
        self.message = message
        self.exception_formatted = exception_formatted

    def __str__(self) -> str:
        return f"{self.message}\n\n{self.exception_formatted}".rstrip()


class RemoteError(MonarchError):
    """Stands for an exception of the far side that could not be sent, or not be made here.

    `type_name` is its class with its module, `text` what it said, `reason` why it is not itself.
    """

    def __init__(self, type_name: str, text: str, reason: str = "") -> None:
        super().__init__(type_name, text, reason)
        self.type_name = type_name
        self.text = text
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.type_name}: {self.text}" if self.text else self.type_name


class StoppedError(MonarchError, RuntimeError):
    """The runtime of this process has been shut down: nothing can be sent or waited for."""


class SupervisionError(MonarchError, RuntimeError):
    """A call that cannot be answered, because what it was made to has failed or was stopped.

    `endpoint` is what was called, `failure` what is known of the death (None after a stop), `ranks`
    the ranks of the called mesh, unsliced, that are lost. `delivered` is False where the call
    certainly did not reach its actor, so that it may be made again, and None where that is unknown.
    """

    delivered: bool | None = None

    def __init__(
        self,
        message: str,
        failure: MeshFailure | None = None,
        ranks: tuple[int, ...] = (),
        endpoint: str = "",
    ) -> None:
        super().__init__(message, failure, ranks, endpoint)
        self.message = message
        self.failure = failure
        self.ranks = ranks or (failure.ranks if failure is not None else ())
        self.endpoint = endpoint

    def __str__(self) -> str:
        return self.message


class ActorCrashError(SupervisionError):
    """A call that cannot be answered, because a proc of the called mesh is lost.

    `host` is the name of the machine it ran on, `node_id` that machine's id in its job, which
    `ProcessMesh.replace_node` takes; both are empty where they are not known.
    """

    @property
    def host(self) -> str:
        """The name of the machine that the proc ran on."""
        return "" if self.failure is None else self.failure.host

    @property
    def node_id(self) -> str:
        """The id of that machine in its job."""
        return "" if self.failure is None else self.failure.node_id


class DeadlockError(SupervisionError):
    """Endpoints that wait for each other in a circle, each holding its actor meanwhile.

    `cycle` names them in order, as `actor.endpoint`; the last waits for the first.
    """

    def __init__(self, message: str, cycle: tuple[str, ...] = (), endpoint: str = "") -> None:
        super().__init__(message, None, (), endpoint)
        self.args = (message, cycle, endpoint)
        self.cycle = cycle


def call_failed(
    failure: MeshFailure, ranks: tuple[int, ...] = (), endpoint: str = ""
) -> SupervisionError:
    """What a call raises to which ranks of the called mesh will not answer.

    An `ActorCrashError` where the proc is lost, else a `SupervisionError`.
    """
    what = ActorCrashError if failure.proc_lost else SupervisionError
    text = failure.summary()
    if endpoint:
        text = f"{endpoint}: {ranks_text(ranks or failure.ranks)} cannot answer; {text}"
    root = failure.causes[-1] if failure.causes else None
    if root is not None and root.traceback:
        text += f"\n\n{root.traceback.rstrip()}"
    return what(text, failure, ranks, endpoint)
