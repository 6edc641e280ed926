"""Actors: classes whose methods are called across processes, and the meshes they live in."""

from __future__ import annotations

from monarch._actor.actor import Actor
from monarch._actor.context import (
    Context,
    context,
    current_actor_name,
    current_rank,
    current_size,
)
from monarch._actor.decorators import concurrent_endpoint, endpoint
from monarch._actor.endpoint import Endpoint
from monarch._actor.fold import Accumulator, send
from monarch._actor.future import Future
from monarch._actor.handle import as_endpoint
from monarch._actor.ports import Channel, Port, PortReceiver
from monarch._actor.process import shutdown_context
from monarch._failure import MeshFailure
from monarch._mesh.controller import get_or_spawn_controller
from monarch._mesh.here import this_host, this_proc
from monarch._mesh.host_mesh import HostMesh
from monarch._mesh.proc_mesh import ProcMesh
from monarch._shape.extent import Extent, Point
from monarch._shape.value_mesh import ValueMesh
from monarch._supervision.service import unhandled_fault_hook
from monarch.errors import ActorCrashError, ActorError, DeadlockError, SupervisionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from monarch import config
    from monarch._job.attach import attach_to_workers
    from monarch._job.bootstrap import default_bootstrap_cmd
    from monarch._job.from_config import hosts_from_config
    from monarch._job.gateway import attach
    from monarch._job.worker import (
        run_worker_loop_forever,
        run_worker_loop_until_shutdown,
        start_worker_loop_forever,
    )
    from monarch._link.channel_transport import ChannelTransport
    from monarch._link.transport import enable_transport

__all__ = [
    "Accumulator",
    "Actor",
    "ActorCrashError",
    "ActorError",
    "Channel",
    "ChannelTransport",
    "Context",
    "DeadlockError",
    "Endpoint",
    "Extent",
    "Future",
    "HostMesh",
    "MeshFailure",
    "Point",
    "Port",
    "PortReceiver",
    "ProcMesh",
    "SupervisionError",
    "ValueMesh",
    "as_endpoint",
    "attach",
    "attach_to_workers",
    "concurrent_endpoint",
    "config",
    "context",
    "current_actor_name",
    "current_rank",
    "current_size",
    "default_bootstrap_cmd",
    "enable_transport",
    "endpoint",
    "get_or_spawn_controller",
    "hosts_from_config",
    "run_worker_loop_forever",
    "run_worker_loop_until_shutdown",
    "send",
    "shutdown_context",
    "start_worker_loop_forever",
    "this_host",
    "this_proc",
    "unhandled_fault_hook",
]

# Where names are that few programs use: each is imported when it is asked for.
_LATER = {
    "ChannelTransport": "monarch._link.channel_transport",
    "attach": "monarch._job.gateway",
    "attach_to_workers": "monarch._job.attach",
    "config": "monarch",
    "default_bootstrap_cmd": "monarch._job.bootstrap",
    "enable_transport": "monarch._link.transport",
    "hosts_from_config": "monarch._job.from_config",
    "run_worker_loop_forever": "monarch._job.worker",
    "run_worker_loop_until_shutdown": "monarch._job.worker",
    "start_worker_loop_forever": "monarch._job.worker",
}


def __getattr__(name: str) -> object:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - few programs need one of these

    found: object = getattr(import_module(module), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
