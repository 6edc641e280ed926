"""What happens to a failure that no owner handles: the client's hook, the end of the program."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from monarch._failure import MeshFailure

__all__ = [
    "current_hook",
    "end_program",
    "is_default",
    "replace_default",
    "report_unhandled",
    "unhandled_fault_hook",
]


def unhandled_fault_hook(failure: MeshFailure) -> None:  # noqa: ARG001 - what hooks are called with
    """Called with each failure that no owner handled; this one ends the program with status 1.

    Set `monarch.actor.unhandled_fault_hook` to a function of your own to do something else. It is
    called in a thread of the runtime's, one failure at a time. When it returns, the program goes
    on; when it raises SystemExit, the program ends at once with that status and one report; any
    other exception counts as status 1 and is in the report.

    Args:
        failure: what is known of the death.

    Raises:
        SystemExit: always.

    """
    raise SystemExit(1)


def current_hook() -> Callable[[MeshFailure], object]:
    """The hook that is set now."""
    own = _own_hook()
    return _default[-1] if own is None else own


def _own_hook() -> Callable[[MeshFailure], object] | None:
    """The hook that the program has set, where it has set one."""
    public = sys.modules.get("monarch.actor")
    hook = getattr(public, "unhandled_fault_hook", None)
    return hook if callable(hook) and hook is not unhandled_fault_hook else None


def replace_default(hook: Callable[[MeshFailure], object] | None) -> None:
    """What is called where the program has set no hook; None brings back the end of the program."""
    _default[1:] = [] if hook is None else [hook]


_default: list[Callable[[MeshFailure], object]] = [unhandled_fault_hook]
_last_lost = ("", 0)
"""The node, and how often its ranks had been replaced, that was last said to be lost."""


def is_default() -> bool:
    """Whether an unhandled failure will certainly end the program."""
    return current_hook() is unhandled_fault_hook


def report_unhandled(failure: MeshFailure, end: Callable[[int, str], object]) -> object:
    """Give a failure to the hook; `end(status, report)` is called when the program is to end.

    Gives what the hook returns. A loss that `replace_node` makes good ends no program that has no
    hook: its calls raise it.
    """
    if failure.replaceable and _own_hook() is None:
        _say_lost(failure)
        return None
    try:
        return current_hook()(failure)
    except SystemExit as stop:
        status = _status(stop)
        end(status, _headed(failure, status))
    except BaseException:  # noqa: BLE001 - a hook that fails must not hide what it was told
        import traceback  # noqa: PLC0415 - only on the way out

        text = traceback.format_exc().rstrip()
        end(1, f"{_headed(failure, 1)}\nunhandled_fault_hook raised in turn:\n{text}")
    return None


def end_program(status: int, report: str, stops: Iterable[Callable[[], object]] = ()) -> None:
    """End this process now, from any thread, without waiting for any other.

    Args:
        status: the exit status.
        report: printed on standard error as the last thing; may be empty.
        stops: called before, to end the processes of the program; what they raise is passed over.

    """
    for stop in stops:
        try:
            stop()
        except Exception:  # noqa: BLE001, S112 - the end comes all the same
            continue
    for stream in (sys.stdout, sys.stderr):
        _quietly(stream, "flush")
    if report:
        _print_whole(report)
    os._exit(status)


def _say_lost(failure: MeshFailure) -> None:
    """A line for each node, however many of its ranks are lost."""
    global _last_lost  # noqa: PLW0603 - one of a program
    lost = (failure.node_id, failure.incarnation)
    if lost != _last_lost:
        _last_lost = lost
        then = f"the program goes on; calls to it raise until replace_node({failure.node_id!r})"
        _print_whole(f"monarch: {failure.summary()}; {then}")


def _headed(failure: MeshFailure, status: int) -> str:
    return (
        f"monarch: a failure that nobody handled ends the program with status {status}\n"
        f"{failure.report()}"
    )


def _status(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    return stop.code & 0xFF if isinstance(stop.code, int) else 1


def _print_whole(report: str) -> None:
    data = (report.rstrip("\n") + "\n").encode("utf-8", "backslashreplace")
    try:
        fd = sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        fd = 2
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:
            import select  # noqa: PLC0415 - rarely a full pipe

            if not select.select([], [fd], [], 1.0)[1]:
                return
        except OSError:
            return


def _quietly(stream: object, method: str) -> None:
    try:
        getattr(stream, method)()
    except Exception:  # noqa: BLE001 - closed, or a reader that is gone
        return
