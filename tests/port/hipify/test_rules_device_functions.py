"""Device functions that a project declares beside those of HIP's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from port.hipify import convert
from tests.hip_headers import clang_says
from tests.port.hipify.one_file import convert as converted
from tests.port.hipify.one_file import output

if TYPE_CHECKING:
    from pathlib import Path

OWN = "PORT_OWN"


@pytest.mark.parametrize(
    "declaration",
    [
        "__device__ __forceinline__ void atomicMin(float *const at, const float value) {}",
        "static __inline__ __device__ double atomicAdd(double *at, double by) { return by; }",
        "DEVICE float atomicMax(float *at, float by);",
        "namespace mine { __device__ float atomicMax(float *at, float by) { return by; } }",
        "inline __device__ float __shfl_down(float value, unsigned by) { return value; }",
        "__device__ inline const float *__ldg(const float *const *p) { return *p; }",
        "__device__ inline void __syncwarp() {}",
        "inline __device__ int min(int a, int b) { return a < b ? a : b; }",
    ],
)
def test_device_function_goes_before_hips(declaration: str) -> None:
    text = output(f"{declaration}\n", "a.cu")
    assert text.count(OWN) == 1
    assert output(text, "a.cu") == text
    (note,) = converted(declaration.encode(), "a.cu").findings
    assert (note.rule, note.severity) == ("device-function", "note")


@pytest.mark.parametrize(
    "code",
    [
        "template <class T> __device__ T __ldg(const T *p) { return *p; }",
        "struct Mine { __device__ float atomicMax(float *at, float by); };",
        "inline int min(int a, int b) { return a < b ? a : b; }",
        "inline __device__ float4 fminf(float4 a, float4 b) { return a; }",
        "inline __device__ float2 make_float2(float s) { return make_float2(s, s); }",
        "__global__ void f(int *p) { UNROLL atomicAdd(p, 1); int old = atomicMax(p, 2); }",
        "__device__ int f(int a) { return min(a, 1); }",
        "#define COMPARE(op) bool f(half *a) { return __half2float(*a) op __half2float(a[1]); }",
        "SUM(int, value += PLUS __ldg(p));",
        "#define __shfl_down_sync(mask, value, by) __shfl_down(value, by)",
        "__device__ float atomicScale(float *at, float by) { return by; }",
    ],
)
def test_what_cannot_be_taken_for_hips_stays(code: str) -> None:
    assert OWN not in output(code + "\n", "a.cu")


def test_file_of_c_has_no_overloads() -> None:
    assert OWN not in output("int atomicAdd(int *at, int by);\n", "a.c")


PROGRAM = """#include <cuda_runtime.h>
#include <cuda_fp16.h>
__device__ __forceinline__ void atomicMin(float *at, float value) { *at = value; }
__device__ double atomicAdd(double *at, double by) { return *at += by; }
namespace mine { __device__ inline float atomicMax(float *at, float by) { return *at = by; } }
using namespace mine;
inline __device__ float __shfl_down(float value, unsigned by) { return value; }
inline __device__ int min(int a, int b) { return a < b ? a : b; }
__device__ inline void __syncwarp() {}
__device__ inline __half operator+(const __half &a, const __half &b) { return a; }
__global__ void all(float *p, double *q, __half *h) {
  atomicMin(p, 1.f);
  *q = atomicAdd(q, 1.) + __shfl_down(atomicMax(p, 1.f), 1) + min(1, 2);
  __syncwarp();
  *h = *h + *h;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("side", ["host", "device"])
def test_clang_takes_the_function_of_the_project(tmp_path: Path, side: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.cu").write_text(PROGRAM)
    convert(tmp_path / "src", tmp_path / "out")
    done = clang_says(tmp_path / "out" / "a.cu", "6.4", side, "c++17")
    assert "error" not in done.stderr, done.stderr
    assert done.returncode == 0
