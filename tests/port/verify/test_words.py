"""Names of libraries, labels and distributions."""

from __future__ import annotations

import doctest

import pytest

from port.verify import words


def test_examples_in_the_documentation_hold():
    result = doctest.testmod(words)
    assert result.attempted > 4
    assert result.failed == 0


@pytest.mark.parametrize(
    ("name", "platform"),
    [
        ("monarch-cpu", "cpu"),
        ("monarch_cuda", "cuda"),
        ("jax-rocm7-plugin", "rocm"),
        ("cupy-rocm-7-0", "rocm"),
        ("faiss-gpu-cu12", "cuda"),
        ("OpenMM-HIP-6", "rocm"),
        ("onnxruntime-gpu", None),
        ("torchmonarch", None),
        ("cupy", None),
        ("custom-op", None),
        ("cpu-cuda-tools", None),
    ],
)
def test_platform_in_a_distributions_name(name, platform):
    assert words.platform_in_name(name) == platform


@pytest.mark.parametrize(
    ("library", "base"),
    [
        ("pkg.libs/libcuda-ab12cd34.so.1", "libcuda"),
        ("libamdhip64.so.6", "libamdhip64"),
        ("a/libt-1111.so.1", "libt"),
        ("libomp-5.so", "libomp-5"),
        ("libgomp-a34b3233.so.1.0.0", "libgomp"),
    ],
)
def test_base_name_of_a_library(library, base):
    assert words.library_base(library) == base


@pytest.mark.parametrize(
    ("library", "family"),
    [
        ("libcudart.so.12", "cuda"),
        ("libnvrtc-0a1b2c3d.so.12", "cuda"),
        ("librocblas.so.4", "rocm"),
        ("libhipblaslt.so.0", "rocm"),
        ("libc.so.6", None),
        ("libcurl.so.4", None),
        ("libcudf.so", None),
    ],
)
def test_family_of_a_library(library, family):
    assert words.family(library) == family
