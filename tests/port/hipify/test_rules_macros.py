"""The rules for macros: what the CUDA compiler defines, pasted and spelled names, lists."""

from __future__ import annotations

import pytest

from tests.port.hipify.one_file import output, reports
from tests.port.hipify.rules_on import rules_on


def test_device_pass_test_is_renamed_and_comparisons_are_reported() -> None:
    text = (
        "#ifdef __CUDA_ARCH__\n#endif\n#if defined(__CUDACC__) || !defined __CUDA_ARCH__\n#endif\n"
        "#if defined(__CUDA_ARCH__) && \\\n    __CUDA_ARCH__ >= 800\n#endif\n"
    )
    outcome = rules_on(text)
    assert outcome.text.startswith("#ifdef __HIP_DEVICE_COMPILE__\n")
    assert "#if defined(__HIPCC__) || !defined __HIP_DEVICE_COMPILE__\n" in outcome.text
    assert [p[:2] for p in outcome.places("architecture-macro")] == [(5, 13), (6, 5)]


def test_version_macros_are_reported_but_not_where_they_are_defined() -> None:
    outcome = rules_on("#if CUDART_VERSION > 1\n#define CUDART_VERSION 1\n#endif\n")
    assert outcome.places("version-macro") == [(1, 5, "CUDART_VERSION")]


def test_a_version_that_is_only_asked_for_tells_whether_the_headers_are_there() -> None:
    text = (
        "#ifdef CUDART_VERSION\n#if !defined(CUDA_VERSION)\n#elifdef CUDA_VERSION\n#endif\n#endif\n"
    )
    outcome = rules_on(text)
    assert outcome.text == text.replace("CUDART_", "HIP_").replace("CUDA_", "HIP_")
    assert outcome.findings == []


@pytest.mark.parametrize(
    "text",
    [
        "#if defined(CUDA_VERSION) && CUDA_VERSION > 1\n#endif\n",
        "#ifndef CUDA_VERSION\n#define CUDA_VERSION 0\n#endif\n",
        "#ifdef CUDNN_VERSION\n#endif\n",
    ],
)
def test_one_that_is_compared_or_the_trees_own_stays_and_is_reported(text: str) -> None:
    assert output(text, "a.h") == text
    assert {each[2] for each in reports(text, "a.h")} == {"version-macro"}


def test_include_guards_follow_the_headers() -> None:
    outcome = rules_on("#ifdef __DRIVER_TYPES_H__\n#endif\n#ifdef CUDNN_H_\n#endif\n")
    assert "#ifdef HIP_INCLUDE_HIP_DRIVER_TYPES_H" in outcome.text
    assert outcome.places("include-guard") == [(3, 8, "CUDNN_H_")]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("#define C(n) cu##n\n", (1, 14, "cu")),
        ("#define C(n) \\\n  cuda ## n ## _v2\n", (2, 3, "cuda")),
        ("#define V(n) cuMemAlloc ## n\n", (1, 14, "cuMemAlloc")),
        ("#define P(a, b) a##b\nint x = P(cu, Init)(0);\n", (2, 11, "cu")),
    ],
)
def test_pasted_names_are_reported(text: str, place: tuple[int, int, str]) -> None:
    assert rules_on(text).places("pasted-name") == [place]


def test_spelled_names_are_reported_and_other_text_is_not() -> None:
    outcome = rules_on('#define S(n) "cu" #n\n#define T(n) "curious " #n\n')
    assert outcome.places("spelled-name") == [(1, 14, "cu")]


def test_list_macro_with_entries_that_become_one_is_reported() -> None:
    text = "#define ALL(X) X(CUDA_ERROR_NOT_READY) \\\n  X(cudaErrorNotReady) X(CUDA_SUCCESS)\n"
    assert rules_on(text, "a.cpp").places("merged-names") == [(2, 5, "cudaErrorNotReady")]


def test_macro_that_names_a_header_is_mapped_or_reported() -> None:
    outcome = rules_on('#define A <cuda.h>\n#define B "cudnn.h"\n#define C <own.h>\n', "a.c")
    assert "#define A <hip/hip_runtime.h>\n" in outcome.text
    assert outcome.places("macro-include") == [(2, 11, "cudnn.h")]


def test_trigraphs_that_hide_a_directive_or_split_a_name_are_reported() -> None:
    text = (
        '??=include <cuda.h>\nint a; // why??/\n// so??=\ncuda??/\nStream_t s;\nauto t = "x??/";\n'
    )
    outcome = rules_on(text, "a.c")
    assert outcome.places("trigraph") == [(1, 1, "??="), (4, 5, "??/")]
