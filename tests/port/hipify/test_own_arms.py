"""Conditions with an arm behind them that the project has for HIP itself."""

from __future__ import annotations

import pytest

from tests.port.hipify.one_file import convert, output, reports

CHAIN = """\
#if defined(__CUDACC__)
#if CUDA_VERSION < 8000
#error "too old"
#endif
#define COMPILER 1
#elif defined(__HIP__)
#define COMPILER 2
#endif
"""


def test_the_projects_arm_for_hip_is_taken_and_not_cudas_before_it() -> None:
    assert output(CHAIN, "platform.h") == CHAIN
    assert reports(CHAIN, "platform.h") == []
    notes = [(f.line, f.column, f.rule) for f in convert(CHAIN.encode(), "platform.h").findings]
    assert notes == [(1, 13, "compiler-macro"), (2, 5, "version-macro")]


@pytest.mark.parametrize(
    "text",
    [
        "#ifdef __CUDACC__\n#elif defined(__HIP_PLATFORM_AMD__)\n#endif\n",
        "#ifdef __CUDACC__\n#elifdef __HIPCC__\n#endif\n",
        "#if __CUDACC__ && !OLD\n#elif A\n#elif B && __HIPCC__\n#endif\n",
        "#ifdef __CUDA_ARCH__\n#elif defined __HIP_DEVICE_COMPILE__\n#endif\n",
        "#ifdef __NVCC__\n#elif defined(__HIPCC__)\n#endif\n",
        "#ifdef __CUDACC__\n#else\n#if A\n#ifdef __HIPCC__\n#endif\n#endif\n#endif\n",
    ],
)
def test_what_leads_to_it_stays_and_is_no_error(text: str) -> None:
    assert output(text, "a.h") == text
    assert reports(text, "a.h") == []


@pytest.mark.parametrize(
    "text",
    [
        "#ifdef __HIPCC__\n#elif defined(__CUDACC__)\n#endif\n",
        "#ifndef __CUDACC__\n#elif defined(__HIPCC__)\n#endif\n",
        "#if !(A || defined(__CUDACC__))\n#elif defined(__HIPCC__)\n#endif\n",
        "#ifdef __CUDACC__\n#elif !defined(__HIPCC__)\n#endif\n",
        "#ifdef __CUDACC__\n#endif\n#ifdef __HIPCC__\n#endif\n",
        "#ifdef __CUDACC__\n#ifdef __HIPCC__\n#endif\n#endif\n",
        "#ifdef __CUDACC__\n#else\n#ifdef __HIP_PLATFORM_AMD__\n#endif\n#endif\n",
    ],
    ids=["before", "denied", "denied-group", "hip-denied", "apart", "inside", "host-api"],
)
def test_without_one_behind_it_the_test_becomes_hips(text: str) -> None:
    assert output(text, "a.h") == text.replace("__CUDACC__", "__HIPCC__")


def test_a_comparison_that_holds_for_nothing_at_all_is_an_error_all_the_same() -> None:
    text = "#if __CUDA_ARCH__ < 700\n#elif defined(__HIPCC__)\n#endif\n"
    assert reports(text, "a.h") == [(1, 5, "architecture-macro", "__CUDA_ARCH__")]
