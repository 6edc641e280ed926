"""Arguments that CUDA's C++ interface lets a call leave out, and HIP's does not."""

from __future__ import annotations

import pytest

from tests.hip_headers import errors_of
from tests.port.hipify.one_file import output, reports


@pytest.mark.parametrize(
    ("call", "made"),
    [
        (
            "cudaMemcpyToSymbolAsync(at, from, 4)",
            "hipMemcpyToSymbolAsync(HIP_SYMBOL(at), from, 4, 0, hipMemcpyHostToDevice)",
        ),
        (
            "cudaMemcpyToSymbolAsync(at, from, 4, 8)",
            "hipMemcpyToSymbolAsync(HIP_SYMBOL(at), from, 4, 8, hipMemcpyHostToDevice)",
        ),
        (
            "cudaMemcpyFromSymbolAsync(to, at, sizeof(at))",
            "hipMemcpyFromSymbolAsync(to, HIP_SYMBOL(at), sizeof(at), 0, hipMemcpyDeviceToHost)",
        ),
        ("cudaMalloc3DArray(&a, &d, extent)", "hipMalloc3DArray(&a, &d, extent, 0)"),
        ("cudaGraphInstantiateWithFlags(&e, g)", "hipGraphInstantiateWithFlags(&e, g, 0)"),
    ],
)
def test_argument_that_was_left_out_is_written(call: str, made: str) -> None:
    text = f"#include <cuda_runtime.h>\nvoid f() {{ CHECK({call}); }}\n"
    assert f"CHECK({made});" in output(text, "a.cu")
    assert reports(text, "a.cu") == []


@pytest.mark.parametrize(
    "code",
    [
        "void f() { cudaMalloc3DArray(&a, &d, extent, flags); }",
        "void f() { mine.cudaMalloc3DArray(&a, &d, extent); }",
        "template <class... A> void f(A... a) { cudaMalloc3DArray(a...); }",
        "cudaError_t cudaMalloc3DArray(cudaArray_t *a, const Form *form, cudaExtent extent);",
    ],
)
def test_call_that_leaves_nothing_out_stays(code: str) -> None:
    assert ", 0)" not in output(f"#include <cuda_runtime.h>\n{code}\n", "a.cu")


@pytest.mark.slow
def test_converted_calls_compile() -> None:
    text = """#include <cuda_runtime.h>
int use(cudaArray_t a, const cudaChannelFormatDesc *d, cudaGraph_t g, cudaGraphExec_t e,
        const cudaExternalSemaphore_t *s, const cudaExternalSemaphoreSignalParams *p) {
  return cudaMalloc3DArray(&a, d, cudaExtent()) + cudaGraphInstantiateWithFlags(&e, g) +
         cudaSignalExternalSemaphoresAsync(s, p, 1) +
         cudaMemcpy2DArrayToArray(a, 0, 0, a, 0, 0, 4, 4);
}
"""
    assert errors_of(output(text, "a.cpp"), "6.4", "c++", "-Wno-maybe-uninitialized") == ""
