"""Folders that `HostMesh.sync_workspace` brings to hosts."""

from __future__ import annotations

from monarch._mesh.workspace import Workspace

__all__ = ["Workspace"]
