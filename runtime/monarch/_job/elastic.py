"""The variables that SPMD programs expect, as torchrun sets them, from the place in a mesh."""

from __future__ import annotations

import os
import socket
import sys
from math import prod
from typing import TYPE_CHECKING, Any

from monarch._actor.actor import Actor
from monarch._actor.context import current_rank
from monarch._actor.decorators import endpoint
from monarch._job.network import AddrType, get_ipaddr

if TYPE_CHECKING:
    from monarch._mesh.proc_mesh import ProcMesh


class SPMDActor(Actor):
    """One rank of an SPMD program: sets its variables, and runs scripts or commands.

    The last dimension of the mesh lies within a host; ranks follow the mesh.
    """

    def __init__(self) -> None:
        point = current_rank()
        sizes = dict(zip(point.extent.labels, point.extent.sizes, strict=True))
        local = point.extent.labels[-1] if sizes else None
        self.rank: int = point.rank
        self.world_size: int = prod(sizes.values())
        self.local_rank: int = point[local] if local is not None else 0
        self.local_world_size: int = sizes[local] if local is not None else 1
        self.nproc_per_node: int = self.local_world_size
        self.group_rank: int = self.rank // self.local_world_size
        self.group_world_size: int = self.world_size // self.local_world_size

    def _set(self, master_addr: str, master_port: int) -> None:
        values: dict[str, object] = {
            "MASTER_ADDR": master_addr,
            "MASTER_PORT": master_port,
            "RANK": self.rank,
            "WORLD_SIZE": self.world_size,
            "LOCAL_RANK": self.local_rank,
            "LOCAL_WORLD_SIZE": self.local_world_size,
            "GROUP_RANK": self.group_rank,
            "GROUP_WORLD_SIZE": self.group_world_size,
            "ROLE_NAME": "rank",
            "ROLE_RANK": self.rank,
            "ROLE_WORLD_SIZE": self.world_size,
        }
        os.environ.update({name: str(value) for name, value in values.items()})

    @endpoint
    def get_host_port(self, use_ipaddr: AddrType | None = None) -> tuple[str, int]:
        """A name of this host, or an address of it, and a TCP port that is free now.

        Raises:
            ValueError: `use_ipaddr` is no `AddrType`.
            RuntimeError: the host has no address of that type.

        """
        with socket.socket() as sock:
            sock.bind(("localhost", 0))
            port: int = sock.getsockname()[1]
        return _name_of_host(port, use_ipaddr), port

    @endpoint
    def setup_env(self, master_addr: str, master_port: int) -> None:
        """Set the variables in this process."""
        self._set(master_addr, master_port)

    @endpoint
    def main(self, master_addr: str, master_port: int, script_args: list[str]) -> bool:
        """Set the variables, and run a script, or with "-m" a module, as the main program.

        Raises:
            ValueError: there is nothing to run.
            SystemExit: the script ended with a status other than 0.

        """
        import runpy  # noqa: PLC0415 - only to run one

        if not script_args or script_args == ["-m"]:
            raise ValueError(
                "no script to run: script_args is [script, arguments…] or [-m, module, arguments…]"
            )
        self._set(master_addr, master_port)
        folder = os.environ.get("WORKSPACE_DIR", "")
        if os.path.isdir(folder):  # noqa: PTH112 - a name from outside
            os.chdir(folder)
        try:
            if script_args[0] == "-m":
                sys.argv[:] = script_args[1:]
                sys.path.insert(0, os.getcwd())  # noqa: PTH109 - as python -m does
                runpy.run_module(script_args[1], run_name="__main__", alter_sys=True)
            else:
                sys.argv[:] = script_args
                sys.path.insert(0, os.path.dirname(os.path.abspath(script_args[0])))  # noqa: PTH100, PTH120 - as python does
                runpy.run_path(script_args[0], run_name="__main__")
        except SystemExit as ended:
            if ended.code not in {None, 0}:
                raise RuntimeError(
                    f"rank {self.rank}: {script_args[0]} ended with status {ended.code}"
                ) from None
        return True

    @endpoint
    def run_command(self, entrypoint: str, args: list[str], env: dict[str, str]) -> bool:
        """Run a program with these variables set, and wait for it.

        Raises:
            subprocess.CalledProcessError: it ended with a status other than 0.

        """
        import subprocess  # noqa: PLC0415 - only to run one

        subprocess.run([entrypoint, *args], env={**os.environ, **env}, check=True)
        return True


def setup_torch_elastic_env(
    proc_mesh: ProcMesh,
    master_addr: str | None = None,
    master_port: int | None = None,
    use_ipaddr: AddrType | None = None,
) -> None:
    """Set the variables of `torch.distributed` in every process of a mesh.

    `RANK`, `WORLD_SIZE`, `LOCAL_RANK`, `LOCAL_WORLD_SIZE`, `GROUP_*`, `ROLE_*`, `MASTER_ADDR` and
    `MASTER_PORT`. The last dimension of the mesh lies within a host.

    Args:
        proc_mesh: the processes.
        master_addr: where rank 0 listens; its host's name by default.
        master_port: a TCP port there; a free one by default.
        use_ipaddr: the type of the address that is given in place of the name; None for the name.

    """
    actors = proc_mesh.spawn("spmd", SPMDActor)
    if master_addr is None or master_port is None:
        found = _first(actors).get_host_port.call_one(use_ipaddr).get()
        master_addr, master_port = master_addr or found[0], master_port or found[1]
    actors.setup_env.call(master_addr, master_port).get()


async def setup_torch_elastic_env_async(
    proc_mesh: ProcMesh,
    master_addr: str | None = None,
    master_port: int | None = None,
    use_ipaddr: AddrType | None = None,
) -> None:
    """As `setup_torch_elastic_env`, in a coroutine."""
    actors = proc_mesh.spawn("spmd", SPMDActor)
    if master_addr is None or master_port is None:
        found = await _first(actors).get_host_port.call_one(use_ipaddr)
        master_addr, master_port = master_addr or found[0], master_port or found[1]
    await actors.setup_env.call(master_addr, master_port)


def _first(actors: Any) -> Any:
    """The actor of rank 0."""
    return actors.slice(**dict.fromkeys(actors.extent.labels, 0))


def _name_of_host(port: int, use_ipaddr: AddrType | None) -> str:
    name = socket.gethostname()
    if use_ipaddr is not None:
        return get_ipaddr(name, port, use_ipaddr)
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"  # a name that nobody can look up leaves this host's own
    return name
