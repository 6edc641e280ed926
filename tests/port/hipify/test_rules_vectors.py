"""Operators that a project declares on vector types, beside those of HIP's own."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from port.hipify import convert
from tests.hip_headers import hip_clang, include_folder
from tests.port.hipify.one_file import output, reports

if TYPE_CHECKING:
    from pathlib import Path

OWN = "PORT_OWN"


@pytest.mark.parametrize(
    "declaration",
    [
        "inline __device__ float4 operator*(float4 a, float4 b) { return a; }",
        "static const float2 &operator/(const float2 &a, const float2 &b);",
        "__host__ __device__ void operator+=(float3 &a, float3 b) { a.x += b.x; }",
        "inline void operator-=(uint4 &, const uint4);",
        "int2 &operator++(int2 &a);",
        "__device__ half2 operator*(const half2 &a, const half2 &b) { return a; }",
        "__device__ nv_bfloat16 operator+(nv_bfloat16 a, nv_bfloat16 b) { return a; }",
        "inline cuDoubleComplex operator*(cuDoubleComplex a, cuDoubleComplex b) { return a; }",
    ],
)
def test_operator_on_vectors_alone_goes_before_hips(declaration: str) -> None:
    text = output(f"#include <cuComplex.h>\n{declaration}\n", "a.cu")
    assert f"\n{OWN} " in text
    assert text.count(OWN) == 1
    assert output(text, "a.cu") == text


@pytest.mark.parametrize(
    "declaration",
    [
        "float4 operator*(float4 a, float b);",
        "Mine operator*(Mine a, Mine b);",
        "float4 operator-(float4 a);",
        "struct Mine { float4 operator*(float4 b); };",
        "bool operator==(float4 a, float4 b);",
        "float4 f(float4 a, float4 b) { return operator*(a, b); }",
    ],
)
def test_operator_that_hip_leaves_alone_stays(declaration: str) -> None:
    assert OWN not in output(declaration + "\n", "a.cu")


def test_operator_is_noted_once_a_file() -> None:
    text = "float2 operator*(float2 a, float2 b);\nfloat2 operator/(float2 a, float2 b);\n"
    assert reports(text, "a.cu") == []


def test_operator_on_a_name_that_another_file_gives_a_vector(tmp_path: Path) -> None:
    source = tmp_path / "src"
    source.mkdir()
    (source / "types.h").write_text("typedef double2 Pair;\nusing Complex = Pair;\n")
    (source / "a.cu").write_text('#include "types.h"\nComplex operator*(Complex a, Complex b);\n')
    convert(source, tmp_path / "out")
    assert f"{OWN} Complex operator*" in (tmp_path / "out" / "a.cu").read_text()


def test_operator_finds_the_compat_header_whatever_arm_is_taken() -> None:
    text = (
        "#pragma once\n#ifndef MINE\n#include <cuda_bf16.h>\n#else\n#include <mine.h>\n#endif\n"
        "#include <cuda_fp16.h>\n\nfloat2 operator*(float2 a, float2 b);\n"
    )
    made = output(text, "a.h")
    assert made.index("#endif") < made.index("port_hip_compat.h") < made.index(OWN)


PROGRAM = """#include <cuda_runtime.h>
typedef float2 Complex;
inline __host__ __device__ Complex operator*(const Complex &a, const Complex &b) {
  return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
inline __host__ __device__ void operator+=(float4 &a, float4 b) { a.x += b.x; }
template <class T> T product(const T &a, const T &b) { return a * b; }
Complex squared(Complex a, float4 &left) { left += left; return product(a, a) * a; }
"""


@pytest.mark.slow
def test_clang_takes_the_operator_of_the_project(tmp_path: Path) -> None:
    clang = hip_clang()
    headers = include_folder("6.4")
    if clang is None or isinstance(headers, str):
        pytest.skip(f"no clang for HIP, or no headers: {headers}")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.cpp").write_text(PROGRAM)
    convert(tmp_path / "src", tmp_path / "out")
    command = [clang, "-std=c++17", "-fsyntax-only", "-Wall", "-Werror", "-D__HIP_PLATFORM_AMD__"]
    done = subprocess.run(
        [*command, "-isystem", str(headers), str(tmp_path / "out" / "a.cpp")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
