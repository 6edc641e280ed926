"""Shapes of meshes: named dimensions, sizes, and which base ranks a part of a mesh holds."""

from __future__ import annotations

from monarch._shape.extent import Extent, Point
from monarch._shape.mesh import MeshTrait, ShapedMesh
from monarch._shape.ndslice import NDSlice, Slice
from monarch._shape.shape import Region, Shape
from monarch._shape.value_mesh import ValueMesh
from monarch._shape.wire import decode_extent, encode_extent

__all__ = [
    "Extent",
    "MeshTrait",
    "NDSlice",
    "Point",
    "Region",
    "Shape",
    "ShapedMesh",
    "Slice",
    "ValueMesh",
    "decode_extent",
    "encode_extent",
]
