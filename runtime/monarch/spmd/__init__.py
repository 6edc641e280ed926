"""SPMD programs on a mesh: the variables of `torch.distributed`, and scripts in every rank."""

from __future__ import annotations

from monarch._job.elastic import SPMDActor, setup_torch_elastic_env, setup_torch_elastic_env_async

__all__ = ["SPMDActor", "setup_torch_elastic_env", "setup_torch_elastic_env_async"]
