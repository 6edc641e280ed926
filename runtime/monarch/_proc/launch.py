"""Starting the zygote, which may be before anything else of the runtime is there.

A fresh interpreter takes long to begin, so a program that is going to start processes has its
zygote begin while it does the same itself.
"""

from __future__ import annotations

import _socket
import errno
import os
from _thread import allocate_lock

from monarch._proc.interpreter import command, spawn_session
from monarch._proc.messages import Messages, close_all
from monarch._proc.surroundings import modules, surroundings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["MARK", "Launched", "ahead", "pairs", "take"]

MARK = "MONARCH_ZYGOTE"
"""A variable of the zygote's environment, by which its descendants can be told from others."""
_CONTROL = 3  # the zygote's descriptor of the socket to us
_ABOVE = 16  # its own end is moved out of the way of what it gets


class Launched:
    """A zygote that was started.

    Attributes:
        pid: its pid.
        messages: our end of its socket.
        variables: the environment it was started with, but for `mark`, its value of `MARK`.
        told: the settings that it has been sent.

    """

    __slots__ = ("mark", "messages", "pid", "told", "variables")

    def __init__(
        self,
        pid: int,
        messages: Messages,
        variables: dict[str, str],
        mark: str,
        told: dict[str, Any],
    ) -> None:
        self.pid = pid
        self.messages = messages
        self.variables = variables
        self.mark = mark
        self.told = told


_lock = allocate_lock()
_begun = False
_waiting: Launched | None = None


def ahead() -> None:
    """Start this process's first zygote, for the `take` to come; nothing if that was done.

    Raises:
        OSError: the interpreter does not run.
        RuntimeError: it is not known where it is.

    """
    global _begun, _waiting  # noqa: PLW0603 - one of a process
    with _lock:
        if not _begun:
            _waiting = _start()
            _begun = True


def take() -> Launched:
    """The zygote that was started ahead, or another; it ends when its socket is closed.

    Raises:
        OSError: the interpreter does not run.
        RuntimeError: it is not known where it is.

    """
    global _begun, _waiting  # noqa: PLW0603 - as above
    with _lock:
        found, _waiting = _waiting, None
        _begun = True
    return _start() if found is None else found


def pairs(count: int) -> list[tuple[int, int]]:
    """Both ends of the links to this many new processes.

    Raises:
        OSError: this process has no descriptors left for them; none is kept open.

    """
    found: list[tuple[int, int]] = []
    try:
        for _ in range(count):
            ours, theirs = _socket.socketpair()
            found.append((ours.detach(), theirs.detach()))
    except OSError as error:
        close_all(fd for pair in found for fd in pair)
        if error.errno not in {errno.EMFILE, errno.ENFILE}:
            raise
        import resource  # noqa: PLC0415 - only on the way out

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        raise OSError(
            error.errno,
            f"cannot start {count} processes: descriptors ran out after the links of {len(found)} "
            f"(each takes two here until it has started, then one; RLIMIT_NOFILE is {soft}, at "
            f"most {hard}: raise it with ulimit -n)",
        ) from None
    return found


def _start() -> Launched:
    variables = dict(os.environ)
    mark = os.urandom(12).hex()
    arguments = command("monarch._proc.zygote")
    try:
        ours, theirs = _socket.socketpair()
        high = _above(theirs.detach())
    except OSError as error:
        raise _without_descriptors(error) from None
    try:
        pid = spawn_session(
            arguments,
            {**variables, MARK: mark},
            [
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, high, _CONTROL),
            ],
        )
    except OSError as error:
        ours.close()
        raise OSError(
            error.errno, f"cannot start processes: {arguments[0]} does not run: {error.strerror}"
        ) from None
    finally:
        os.close(high)
    messages = Messages(ours)
    told = {**surroundings(), "modules": modules()}
    try:
        messages.send(("setup", told))  # what does not go at once goes with the next
    except BrokenPipeError:
        pass  # whoever takes it finds its end
    return Launched(pid, messages, variables, mark, told)


def _above(fd: int) -> int:
    import fcntl  # noqa: PLC0415 - once for a process

    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    finally:
        os.close(fd)


def _without_descriptors(error: OSError) -> OSError:
    import resource  # noqa: PLC0415 - only on the way out

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OSError(
        error.errno,
        f"cannot start processes: no descriptor is free from {_ABOVE} on (RLIMIT_NOFILE is {soft}, "
        f"at most {hard}: raise it with ulimit -n): {error.strerror}",
    )


def _forget() -> None:
    """In a fork of this process: the zygote is the parent's, and must not be kept alive."""
    global _begun, _lock, _waiting  # noqa: PLW0603 - as above
    _lock = allocate_lock()
    if _waiting is not None:
        _waiting.messages.close()
    _begun, _waiting = False, None


os.register_at_fork(after_in_child=_forget)
