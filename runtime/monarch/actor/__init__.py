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

__all__ = [
    "Accumulator",
    "Actor",
    "ActorCrashError",
    "ActorError",
    "Channel",
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
    "concurrent_endpoint",
    "context",
    "current_actor_name",
    "current_rank",
    "current_size",
    "endpoint",
    "get_or_spawn_controller",
    "send",
    "shutdown_context",
    "this_host",
    "this_proc",
    "unhandled_fault_hook",
]
