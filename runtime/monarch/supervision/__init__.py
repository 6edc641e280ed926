"""Failures of actors and processes, and what happens to those that nobody handles."""

from __future__ import annotations

from monarch._failure import Cause, MeshFailure
from monarch._mesh.snapshots import snapshot, snapshots
from monarch._restart import Decision, Restart
from monarch._supervision.service import unhandled_fault_hook
from monarch._supervision.status import ProcStatus, status
from monarch.errors import ActorCrashError, DeadlockError, SupervisionError

__all__ = [
    "ActorCrashError",
    "Cause",
    "DeadlockError",
    "Decision",
    "MeshFailure",
    "ProcStatus",
    "Restart",
    "SupervisionError",
    "snapshot",
    "snapshots",
    "status",
    "unhandled_fault_hook",
]
