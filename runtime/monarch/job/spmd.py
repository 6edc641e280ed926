"""A torchrun command as a job."""

from __future__ import annotations

from monarch._job.spmd import SPMDJob, serve

__all__ = ["SPMDJob", "serve"]
