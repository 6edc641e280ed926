"""The native GPU module, loaded on first use."""

from __future__ import annotations

import contextlib
import functools
import importlib
from typing import TYPE_CHECKING, Any

import monarch
from monarch._preload import one_hip_runtime
from monarch.errors import GpuError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import ModuleType


@functools.cache
def native() -> ModuleType:
    """`monarch._gpu_cuda` or `monarch._gpu_rocm`.

    Raises:
        GpuError: this is monarch-cpu (code `unsupported`).
        RuntimeLibraryError: the HIP runtime is missing, of another major release, or there twice.

    """
    facts = monarch.build_info()
    platform = facts["platform"]
    if platform == "cpu":
        raise GpuError(
            "this is monarch-cpu, which holds no GPU code. Install monarch-cuda for NVIDIA GPUs or "
            "monarch-rocm for AMD GPUs in its place: pip uninstall monarch-cpu, then "
            "pip install monarch-cuda",
            "unsupported",
        )
    with _runtime(platform, facts):
        module = importlib.import_module(f"monarch._gpu_{platform}")
    module.set_error_class(GpuError)
    return module


def _runtime(platform: str, facts: dict[str, Any]) -> AbstractContextManager[None]:
    """CUDA's runtime is inside the module; HIP's is shared by the whole process."""
    if platform == "rocm":
        return one_hip_runtime(facts["runtime_soname"], facts["runtime_version"])
    return contextlib.nullcontext()
