"""From the zygote to a process: by fork, or by running a program in its place.

A process leads a session of its own, dies with the zygote, adopts its descendants' orphans, and has
its environment before anything of the user's is imported.
"""

from __future__ import annotations

import _signal
import marshal
import os
import sys
import time

from monarch import _core
from monarch._link import secret
from monarch._proc import environment
from monarch._proc.interpreter import command, spawn_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from monarch._proc.spec import ProcSpec

# Of a process that runs a program: link, record, reasons, and boards where there are some.
DESCRIPTORS = "MONARCH_PROC_FDS"
LONGEST_REASON = 8192
_MARSHAL = 4  # the interpreter that reads a record may be an older one
FAILED_TO_START = 70  # exit code of a process that could not begin its work
_FIRST = 3
_TRIAL = 1.0  # seconds for a fork that only shows whether one can be made


def threads_at_a_fork() -> int:
    """How many threads there are when a fork begins.

    Libraries that know of forks end their threads before one and start others where they are used
    again: OpenBLAS does, which numpy brings along. So one fork is made for nothing.
    """
    threads: int = _core.count_threads()
    if threads == 1:
        return threads
    import warnings  # noqa: PLC0415 - only where a module has started threads

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        pid = os.fork()
    if pid == 0:
        os._exit(0)
    until = time.monotonic() + _TRIAL
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if time.monotonic() > until:  # it hangs in what it inherited, as others would
            os.kill(pid, _signal.SIGKILL)
            os.waitpid(pid, 0)
            return threads
        time.sleep(0.0005)
    return _core.count_threads()  # type: ignore[no-any-return]


def lead_session(zygote: int) -> None:
    """Lead a session, and die with the process `zygote`."""
    if os.getsid(0) != os.getpid():
        os.setsid()
    try:
        _core.set_parent_death_signal(_signal.SIGKILL)
        _core.become_subreaper()
    except OSError:
        return  # macOS: the end of the link tells the process of its parent's death
    if os.getppid() != zygote:
        os._exit(FAILED_TO_START)


def set_variables(spec: ProcSpec, settings: dict[str, Any]) -> None:
    """Give this process the environment that its spec asks for."""
    devices = settings.get("devices", True)
    for name, value in environment.variables(spec, os.environ, devices=devices).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def become_program(spec: ProcSpec, link: int, settings: dict[str, Any], reasons: int) -> NoReturn:
    assert spec.command is not None  # noqa: S101 - the caller's condition
    record = write_record(spec, settings, bound=True)
    boards, known = _boards(settings), _secret(settings)
    moved = _out_of_the_way((link, record, reasons, *boards, *known))
    for number, fd in enumerate(moved):
        os.dup2(fd, _FIRST + number, inheritable=True)
    os.environ.update(_named(len(boards), len(known)))
    try:
        os.execvpe(spec.command[0], spec.command, os.environ)  # noqa: S606 - no shell, on purpose
    except OSError as error:
        raise OSError(
            error.errno, f"cannot run bootstrap_command {spec.command[0]!r}: {error.strerror}"
        ) from None


def execute(
    spec: ProcSpec,
    link: int,
    stdio: tuple[int, int] | None,
    settings: dict[str, Any],
    reasons: int,
) -> int:
    """Start the process `spec` as a program without a fork of this interpreter; its pid.

    For a zygote that has more than one thread: what a fork would do in the child is left to the
    child, except for the environment.
    """
    variables = dict(os.environ)
    devices = settings.get("devices", True)
    for name, value in environment.variables(spec, os.environ, devices=devices).items():
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = value
    arguments = spec.command or command("monarch._proc.child")
    own = [write_record(spec, settings, bound=False), *_secret(settings)]
    boards = _boards(settings)
    moved = _out_of_the_way((link, own[0], reasons, *boards, *own[1:]))
    variables.update(_named(len(boards), len(own) - 1))
    actions = [(os.POSIX_SPAWN_DUP2, fd, _FIRST + number) for number, fd in enumerate(moved)]
    actions += [(os.POSIX_SPAWN_DUP2, fd, 1 + number) for number, fd in enumerate(stdio or ())]
    try:
        return spawn_session(arguments, variables, actions)
    finally:
        for fd in (*moved, *own):
            os.close(fd)


def _secret(settings: dict[str, Any]) -> list[int]:
    """A descriptor with the cluster secret, where there is one."""
    return [secret.current().hand_down()] if settings.get("secret") else []


def _boards(settings: dict[str, Any]) -> list[int]:
    """The descriptor of the pages on which processes say what they do, where there is one."""
    return [settings["boards"]] if "boards" in settings else []


def _named(boards: int, secrets: int) -> dict[str, str]:
    """Variables that tell a program which descriptors it has inherited."""
    end = _FIRST + 3 + boards
    found = {DESCRIPTORS: ",".join(map(str, range(_FIRST, end)))}
    if secrets:
        found[secret.FD_VARIABLE] = str(end)
    return found


def write_record(spec: ProcSpec, settings: dict[str, Any], *, bound: bool) -> int:
    """A descriptor from which a program's process reads what it is."""
    body = marshal.dumps((spec.values(), settings, bound), _MARSHAL)
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("monarch-proc")
    else:
        import tempfile  # noqa: PLC0415 - macOS only

        fd, path = tempfile.mkstemp()
        os.unlink(path)
    while body:
        body = body[os.write(fd, body) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def read_record(fd: int) -> tuple[tuple[Any, ...], dict[str, Any], bool]:
    """What `write_record` wrote; closes the descriptor."""
    with os.fdopen(fd, "rb") as file:
        values, settings, bound = marshal.loads(file.read())  # noqa: S302 - written by our zygote
    return values, settings, bound


def _out_of_the_way(fds: Sequence[int]) -> list[int]:
    """Copies above the numbers that they are to be moved to."""
    import fcntl  # noqa: PLC0415 - only where a program is run

    return [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 16) for fd in fds]


def python_output() -> None:
    """Let lines leave as they are printed: the reader of this pipe may be at a terminal."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True)
