"""What a new process does: take its place, run `bootstrap`, work, and end without loose ends."""

from __future__ import annotations

import _signal
import _socket
import gc
import os
import sys

from monarch._link import secret
from monarch._proc import binding, start
from monarch._proc.spec import ProcSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Any, NoReturn

BODY = "monarch._proc.work:work"  # what a process runs; settings may name another


def main() -> None:
    """Be a process that was started as a program: what it is lies on inherited descriptors."""
    numbers = os.environ.pop(start.DESCRIPTORS, None)
    if numbers is None:
        raise SystemExit(
            f"{start.DESCRIPTORS} is not set: this program is started by a process mesh "
            "(spawn_procs, with or without bootstrap_command), not by hand"
        )
    link, record, reasons, *boards = map(int, numbers.split(","))
    for fd in (link, reasons, *boards):
        os.set_inheritable(fd, False)
    values, settings, bound = start.read_record(record)
    if boards:
        settings["boards"] = boards[0]
    spec = ProcSpec.from_values(values)
    words = LastWords(spec, reasons)
    try:
        start.lead_session(settings["zygote"])
        sys.path[:] = _search_path(settings)
        sys.argv[:] = settings["argv"]
        os.chdir(settings["cwd"])
        if secret.FD_VARIABLE in os.environ:
            secret.current()
        if bound:
            spec.bind.clear()
        run(spec, link, settings, words)
    except BaseException as error:  # noqa: BLE001 - reported, then the process ends
        words.give_up(error)


def forked(
    spec: ProcSpec,
    link: int,
    stdio: tuple[int, int] | None,
    settings: dict[str, Any],
    reasons: int,
    foreign: Sequence[int],
) -> NoReturn:
    """Be the process `spec`, in a fork of the zygote whose own descriptors are `foreign`."""
    words = LastWords(spec, reasons)
    try:
        gc.enable()
        _signal.set_wakeup_fd(-1)
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        start.lead_session(settings["zygote"])
        for fd in foreign:
            os.close(fd)
        if stdio is not None:
            os.dup2(stdio[0], 1)
            os.dup2(stdio[1], 2)
            os.close(stdio[0])
            os.close(stdio[1])
        start.set_variables(spec, settings)
        if spec.command is not None:
            binding.apply(spec.bind)
            start.become_program(spec, link, settings, reasons)
        run(spec, link, settings, words)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the zygote's code must not go on
        words.give_up(error)


def run(spec: ProcSpec, link: int, settings: dict[str, Any], words: LastWords) -> NoReturn:
    """Work until told to stop, and exit with the code that the work gives."""
    from types import ModuleType  # noqa: PLC0415 - light, and bound late on purpose

    # Only the controller decides about Ctrl-C. Not ignored: programs run from here would inherit
    # that, a handler they do not.
    _signal.signal(_signal.SIGINT, _heed_no_interrupt)
    sys.modules["__main__"] = ModuleType("__main__")
    start.python_output()
    binding.apply(spec.bind)
    _reseed()
    module, _, name = settings.get("body", BODY).partition(":")
    body = getattr(__import__(module, fromlist=[name]), name)
    code = body(spec, link, settings, words.close)
    end(code)


class LastWords:
    """Where a process that cannot begin its work leaves the reason, for the report of its end."""

    def __init__(self, spec: ProcSpec, fd: int) -> None:
        self._spec = spec
        self._fd = fd

    def close(self) -> None:
        """The work has begun: from here on, failures have other ways."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def give_up(self, error: BaseException) -> NoReturn:
        """End the process, saying why where people and where the parent look."""
        if isinstance(error, SystemExit):
            end(error.code if isinstance(error.code, int) else int(error.code is not None))
        import traceback  # noqa: PLC0415 - only on the way out

        frames = _frames_of_the_user(error)
        text = "".join(traceback.format_exception(type(error), error, frames)).rstrip()
        try:
            os.write(2, f"process {self._spec.label} ends\n{text}\n".encode())
            if self._fd >= 0:
                self._tell(f"{type(error).__name__}: {error}")
        except OSError:
            pass
        end(start.FAILED_TO_START)

    def _tell(self, reason: str) -> None:
        data = self._spec.id.to_bytes(8, "little") + reason.encode()[: start.LONGEST_REASON]
        channel = _socket.socket(fileno=self._fd)
        self._fd = -1
        channel.send(data)
        channel.close()


def end(code: int) -> NoReturn:
    """Run the exit handlers, write out what was printed, and end."""
    try:
        import atexit  # noqa: PLC0415 - built in

        atexit._run_exitfuncs()  # noqa: SLF001 - what the interpreter itself does at its end
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                pass
        os._exit(code & 0xFF)


def _frames_of_the_user(error: BaseException) -> TracebackType | None:
    """The traceback from the first frame on that is not of this package; all of it without one."""
    folder = os.path.dirname(os.path.dirname(__file__)) + os.sep
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(folder):
        frames = frames.tb_next
    return frames or error.__traceback__


def _search_path(settings: dict[str, Any]) -> list[str]:
    """The parent's; of another interpreter, its own and what the user has added to the parent's."""
    path: list[str] = settings["path"]
    version, *prefixes = settings["interpreter"]
    if (version, *prefixes) == (sys.version, sys.prefix, sys.base_prefix):
        return path
    inside = tuple(prefix + os.sep for prefix in prefixes)
    user = [entry for entry in path if entry not in sys.path and not entry.startswith(inside)]
    return [*user, *sys.path]


def _heed_no_interrupt(_number: int, _frame: object) -> None:
    pass


def _reseed() -> None:
    """Processes of one zygote would all draw the same numbers; `random` sees to itself."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed(int.from_bytes(os.urandom(4), "little"))


if __name__ == "__main__":
    main()
