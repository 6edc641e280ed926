"""Meshes of hosts, processes, actors and values, and the shapes that they have."""

from __future__ import annotations

from monarch._job.process_mesh import ProcessMesh
from monarch._mesh import ActorMesh, HostMesh, ProcMesh, this_host, this_proc
from monarch._shape import Extent, MeshTrait, NDSlice, Point, Region, Shape, Slice, ValueMesh

__all__ = [
    "ActorMesh",
    "Extent",
    "HostMesh",
    "MeshTrait",
    "NDSlice",
    "Point",
    "ProcMesh",
    "ProcessMesh",
    "Region",
    "Shape",
    "Slice",
    "ValueMesh",
    "this_host",
    "this_proc",
]
