"""The rule for arguments that HIP takes with less `const` than CUDA."""

from __future__ import annotations

import pytest

from tests.hip_headers import errors_of
from tests.port.hipify.one_file import output
from tests.port.hipify.rules_on import rules_on


@pytest.mark.parametrize(
    ("text", "argument", "cast"),
    [
        (
            "nvrtcCompileProgram(p, 1, (const char* const*)o);\n",
            "(const char* const*)o",
            "const char **",
        ),
        (
            "void f(const char *const *o) { nvrtcCreateProgram(&p, s, n, 1, o, o); }\n",
            "o",
            "const char **",
        ),
        (
            "const char *const given[] = {a}; int r = nvrtcCompileProgram(p, 1, given);\n",
            "given",
            "const char **",
        ),
        (
            "cublasSgetriBatched(h, n, (const float**)A, n, pivot, C, n, info, 1);\n",
            "(const float**)A",
            "float *const*",
        ),
    ],
)
def test_an_argument_with_more_const_in_sight_is_cast(text: str, argument: str, cast: str) -> None:
    call = text.index("(", text.index("nvrtc" if "nvrtc" in text else "cublas"))
    head, tail = text[:call], text[call:]
    for end in (",", ")"):
        tail = tail.replace(f", {argument}{end}", f", ({cast})({argument}){end}")
    assert rules_on(head + text[call:]).text == head + tail != text


@pytest.mark.parametrize(
    "text",
    [
        "const char *o[] = {a}; nvrtcCompileProgram(p, 1, o);\n",
        "nvrtcCompileProgram(p, 1, options.data());\n",
        "nvrtcCreateProgram(&p, s, n, 0, nullptr, NULL);\n",
        "nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int n, const char *const *o);\n",
        "cublasSgetriBatched(h, n, A, n, pivot, C, n, info, 1);\n",
    ],
)
def test_an_argument_that_passes_stays(text: str) -> None:
    assert rules_on(text).text == text


def test_a_release_that_takes_as_much_const_needs_no_cast() -> None:
    text = "nvrtcCompileProgram(p, 1, (const char *const *)o);\n"
    assert rules_on(text, rocm="7.1").text == text


def test_the_result_compiles() -> None:
    text = (
        "#include <nvrtc.h>\n"
        "nvrtcResult f(nvrtcProgram p, const char *const *o) {\n"
        "  return nvrtcCompileProgram(p, 1, o);\n"
        "}\n"
    )
    made = output(text)
    assert errors_of(made, "6.4", "c++") == ""
    assert "const" in errors_of(made.replace("(const char **)(o)", "o"), "6.4", "c++")
