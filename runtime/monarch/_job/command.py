"""`exec_command`: any program on the hosts of a job."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monarch._actor.actor import Actor
from monarch._actor.context import current_rank
from monarch._actor.decorators import endpoint
from monarch._actor.future import Pending
from monarch._actor.ports import Channel
from monarch._actor.process import process
from monarch._actor.replies import OK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from monarch._actor.future import Future
    from monarch._actor.ports import Port
    from monarch._mesh.host_mesh import HostMesh

_STOP_SECONDS = 30.0


class CommandActor(Actor):
    """Runs a program in its process's surroundings."""

    @endpoint
    def run(
        self,
        command: list[str],
        env: dict[str, str],
        folders: tuple[str | None, str],
        output_dir: str | None,
        lines: Port[tuple[str, bytes]] | None,
    ) -> int:
        """Run the program; its status, 128 + n for signal n.

        `folders` are the working folder that was asked for, and the caller's, which is used where
        it is there. Lines are sent to `lines` as ("stdout" or "stderr", text).
        """
        import subprocess  # noqa: PLC0415 - only to run one

        point = current_rank()
        places = {label.upper(): index for label, index in zip(point, point.values(), strict=True)}
        variables = {f"MONARCH_RANK_{label}": str(index) for label, index in places.items()}
        for label, size in zip(point.extent.labels, point.extent.sizes, strict=True):
            variables[f"MONARCH_SIZE_{label.upper()}"] = str(size)
        wanted, callers = folders
        cwd = wanted or (callers if os.path.isdir(callers) else None)  # noqa: PTH112 - of another host
        options: dict[str, Any] = {
            "env": {**os.environ, **variables, **env},
            "cwd": cwd,
            "stdin": subprocess.DEVNULL,
        }
        if output_dir is not None:
            where = "_".join(f"{label}_{index}" for label, index in point.items()) or "0"
            output_dir = output_dir.replace("$SUBDIR", where)
            os.makedirs(output_dir, exist_ok=True)  # noqa: PTH103 - of another host
            with (
                open(f"{output_dir}/stdout.txt", "wb") as out,  # noqa: PTH123 - as above
                open(f"{output_dir}/stderr.txt", "wb") as err,  # noqa: PTH123
            ):
                return _status(
                    subprocess.run(
                        command, stdout=out, stderr=err, check=False, **options
                    ).returncode
                )
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
        ) as program:
            _pass_on(program, lines)
            return _status(program.wait())


def exec_command(
    host_mesh: HostMesh,
    cmd: Sequence[str],
    env: Mapping[str, str] | None = None,
    workdir: str | None = None,
    output_dir: str | None = None,
    rank: int | None = None,
    point: Mapping[str, int] | None = None,
    per_host: Mapping[str, int] | None = None,
) -> Future[int]:
    """Run a command on hosts, and print what it prints as it comes.

    It starts at once and runs to its end, whether or not that is waited for.

    A command that begins with `-m` or a name in `.py` is run by the hosts' own Python. Each finds
    its place in `MONARCH_RANK_HOSTS`, `MONARCH_SIZE_HOSTS` and so on for each dimension.

    Args:
        host_mesh: the hosts.
        cmd: the program and its arguments.
        env: variables, over those of the hosts.
        workdir: the folder to run in; the caller's by default, where the host has it.
        output_dir: a folder on the hosts for `stdout.txt` and `stderr.txt`, in place of printing;
            `$SUBDIR` in it stands for the place, as `hosts_0`.
        rank: run in this process only, counted over all.
        point: run in the processes with these indices only. Not together with `rank`.
        per_host: sizes of dimensions within a host; one process a host without it.

    Returns:
        A future of the highest status of all, 0 when all succeeded.

    Raises:
        ValueError: the command is empty, or both `rank` and `point` are given.

    """
    command = list(cmd)
    if not command:
        raise ValueError("exec_command: cmd is empty; give the program and its arguments")
    if rank is not None and point is not None:
        raise ValueError("exec_command: give rank or point, not both")
    if command[0] == "-m" or command[0].endswith(".py"):
        command = [sys.executable, *command]
    given = command, dict(env or {}), (workdir, str(Path.cwd())), output_dir
    places, sizes = dict(point or {}), dict(per_host or {})
    return _in_background(lambda: _run(host_mesh, given, rank, places, sizes), command[0])


def _run(
    host_mesh: HostMesh,
    given: tuple[list[str], dict[str, str], tuple[str | None, str], str | None],
    rank: int | None,
    places: dict[str, int],
    sizes: dict[str, int],
) -> int:
    hosts: Any = host_mesh
    outer = {label: places.pop(label) for label in list(places) if label in hosts.extent}
    procs: Any = (hosts.slice(**outer) if outer else hosts).spawn_procs(per_host=sizes)
    try:
        chosen = procs.slice(**places) if places else procs
        if rank is not None:
            chosen = chosen.flatten("rank").slice(rank=rank)
        actors: Any = chosen.spawn("command", CommandActor)
        channel: Any = Channel.open()
        port, receiver = channel
        ended = actors.run.call(*given, port)
        if given[3] is None:
            _print_until(ended, port, receiver)
        return max(int(status) for _, status in ended.get())
    finally:
        procs.stop().get(timeout=_STOP_SECONDS)


def _in_background(work: Callable[[], int], what: str) -> Future[int]:
    """A future of what `work` gives or raises in a thread; the interpreter does not end before."""
    import contextvars  # noqa: PLC0415 - only to run one
    import threading  # noqa: PLC0415 - only to run one

    here = process()
    inbox = here.engine.open_inbox(True)
    results: list[int] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - who waits gets it
            errors.append(error)
        here.engine.post(here.id, inbox.id, 0, OK, b"", None)

    def settle(_inbox: object) -> int:
        if errors:
            raise errors[0]
        return results[0]

    threading.Thread(target=contextvars.copy_context().run, args=(run,), name="command").start()
    return Pending(inbox, 1, settle, f"command {what!r}")


def _print_until(ended: Future[Any], port: Any, receiver: Any) -> None:
    """Print what comes until all programs have ended, or one of their processes is lost."""
    import threading  # noqa: PLC0415 - only to run one

    def close() -> None:
        ended.exception()
        port.send(("", b""))  # the lines of a program come before its status

    threading.Thread(target=close, daemon=True).start()
    while True:
        name, data = receiver.recv().get()
        if not name:
            return
        stream = sys.stderr if name == "stderr" else sys.stdout
        stream.write(data.decode(errors="replace"))
        stream.flush()


def _pass_on(program: Any, lines: Any) -> None:
    """Send each line as it comes, of both streams."""
    import threading  # noqa: PLC0415 - only to run one

    def read(name: str, pipe: Any) -> None:
        for line in pipe:
            lines.send((name, line))

    other = threading.Thread(target=read, args=("stderr", program.stderr))
    other.start()
    read("stdout", program.stdout)
    other.join()


def _status(code: int) -> int:
    return code if code >= 0 else 128 - code
