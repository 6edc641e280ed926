"""Meshes of hosts, of processes and of actors: spawning, slicing, stopping, replacing."""

from __future__ import annotations

from monarch._mesh.actor_mesh import ActorMesh
from monarch._mesh.controller import get_or_spawn_controller
from monarch._mesh.here import this_host, this_proc
from monarch._mesh.host_mesh import HostMesh, HostRef
from monarch._mesh.proc_mesh import ProcMesh
from monarch._mesh.respawn import respawn

__all__ = [
    "ActorMesh",
    "HostMesh",
    "HostRef",
    "ProcMesh",
    "get_or_spawn_controller",
    "respawn",
    "this_host",
    "this_proc",
]
