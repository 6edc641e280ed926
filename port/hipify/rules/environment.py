"""Environment variables that CUDA reads: HIP reads others, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify.lexer import STRING
from port.hipify.rules.tokens import literal, of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.context import Context
    from port.hipify.findings import Finding
    from port.hipify.rewrite import Edit
    from port.hipify.unit import Unit

RULES = {"environment-variable": "A variable that the CUDA libraries read is named"}

_REMEDY = {
    "CUDA_VISIBLE_DEVICES": "HIP reads HIP_VISIBLE_DEVICES (and ROCR_VISIBLE_DEVICES below it); "
    "name both",
    "CUDA_LAUNCH_BLOCKING": "HIP reads AMD_SERIALIZE_KERNEL=3 for the same",
    "CUDA_DEVICE_ORDER": "HIP always counts devices in bus order; drop it",
    "CUDA_HOME": "ROCm's place is ROCM_PATH",
    "CUDA_PATH": "ROCm's place is ROCM_PATH",
    "CUDA_ROOT": "ROCm's place is ROCM_PATH",
    "CUDA_DEVICE_MAX_CONNECTIONS": "HIP reads GPU_MAX_HW_QUEUES",
    "CUBLAS_WORKSPACE_CONFIG": "hipBLAS reads HIPBLAS_WORKSPACE_CONFIG",
    "NVIDIA_VISIBLE_DEVICES": "the AMD container runtime reads AMD_VISIBLE_DEVICES",
}
_NO_COUNTERPART = frozenset(
    (
        "CUDA_CACHE_DISABLE",
        "CUDA_CACHE_MAXSIZE",
        "CUDA_CACHE_PATH",
        "CUDA_FORCE_PTX_JIT",
        "CUDA_DISABLE_PTX_JIT",
        "CUDA_FORCE_JIT",
        "CUDA_DISABLE_JIT",
        "CUDA_MODULE_LOADING",
        "CUDA_MODULE_DATA_LOADING",
        "CUDA_AUTO_BOOST",
        "CUDA_DEVICE_WAITS_ON_EXCEPTION",
        "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
        "CUDA_COREDUMP_FILE",
        "CUDA_DEVICE_DEFAULT_PERSISTING_L2_CACHE_PERCENTAGE_LIMIT",
        "CUDA_MANAGED_FORCE_DEVICE_ALLOC",
        "CUDA_MPS_PIPE_DIRECTORY",
        "CUDA_MPS_LOG_DIRECTORY",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
        "CUDA_INJECTION64_PATH",
        "CUDA_SCALE_LAUNCH_QUEUES",
        "NVIDIA_TF32_OVERRIDE",
        "NVIDIA_DRIVER_CAPABILITIES",
        "CUBLAS_LOGINFO_DBG",
        "CUDNN_LOGINFO_DBG",
    )
)


def rule(unit: Unit, _context: Context) -> Iterator[Finding | Edit]:
    """Report each string that is the name of such a variable."""
    for index in of_kind(unit, STRING):
        text = literal(unit, index)
        if text is None or (text not in _REMEDY and text not in _NO_COUNTERPART):
            continue
        yield unit.finding(
            "environment-variable",
            "warning",
            index,
            f"the CUDA libraries read the environment variable {text}, HIP does not",
            _REMEDY.get(text, "HIP has nothing like it; guard the code that counts on it"),
            name=text,
        )
