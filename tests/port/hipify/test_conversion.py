"""One file: what is renamed, what stays, and that nothing else moves."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from port.hipify import lexer
from tests.port.hipify.one_file import convert, output, reports


def test_names_are_renamed_wherever_code_uses_them() -> None:
    text = (
        "cudaError_t e = cudaMalloc(&p, n), f = ::cudaFree(p);\n"
        "#define SYNC(s) cudaStreamSynchronize(s)\n"
    )
    assert output(text) == (
        "hipError_t e = hipMalloc(&p, n), f = ::hipFree(p);\n"
        "#define SYNC(s) hipStreamSynchronize(s)\n"
    )


@pytest.mark.parametrize("lead", ["inline ", "EXPORT_API ", "return ", "static const ", "= ", "("])
def test_a_name_of_the_global_namespace_after_any_word(lead: str) -> None:
    assert output(f"{lead}::cudaError_t e;\n") == f"{lead}::hipError_t e;\n"


def test_a_name_at_the_very_first_and_last_byte() -> None:
    assert output("cudaError_t") == "hipError_t"
    assert output("\ufeffcudaError_t") == "\ufeffhipError_t"


@pytest.mark.parametrize(
    "text",
    [
        "// cudaMalloc\n",
        "/* cudaMalloc(\n cudaFree */\n",
        'const char* s = "call cudaMalloc( first";\n',
        'const char* s = R"(cudaFree \'"\')";\n',
        "int my_cudaMalloc_wrapper, cudaMallocCounted, xcudaFree, cudaFree_;\n",
        "#error needs cudaMalloc, don't try without\n",
        "int std_max = std::max({1, 2}) + boost_std::max(1, 2);\n",
    ],
)
def test_what_is_no_use_of_a_cuda_name_stays(text: str) -> None:
    assert output(text) == text


@pytest.mark.promise("B08")
def test_own_members_and_functions_keep_their_names() -> None:
    text = (
        "#include <cuda_runtime.h>\n"
        "struct Table { int (*cudaFree)(void*); void drop() { cudaFree(0); } ~Table(); };\n"
        "Table::~Table() { cudaFree(nullptr); }\n"
        "namespace mine { int cudaMalloc(int n); int twice() { return cudaMalloc(2); } }\n"
        "namespace other { using ::cudaStreamQuery; }\n"
        "int use(Table* t, Table& r, void* p) {\n"
        "  return t->cudaFree(p) + r.cudaFree(p) + mine::cudaMalloc(3) + cudaFree(p);\n"
        "}\n"
        "int more(void** p) { return ::cudaMalloc(p, 1) + other::cudaStreamQuery(0); }\n"
    )
    made = output(text)
    assert made.splitlines()[1:4] == text.splitlines()[1:4]
    assert "t->cudaFree(p) + r.cudaFree(p) + mine::cudaMalloc(3) + hipFree(p)" in made
    assert "::hipMalloc(p, 1) + other::hipStreamQuery(0)" in made
    assert "using ::hipStreamQuery" in made
    assert reports(text) == []


@pytest.mark.promise("B08")
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("int a = cudaFooBar(1);\n", [(1, 9, "unknown-name", "cudaFooBar")]),
        ("\n  x = CU_FOO_BAR;\n", [(2, 7, "unknown-name", "CU_FOO_BAR")]),
        ("int a = cuFooBar(2) +\\\n cudnnFooBar();\n",
         [(1, 9, "unknown-name", "cuFooBar"), (2, 2, "unknown-name", "cudnnFooBar")]),
        ("auto h = cuMulticastCreate(a, b);\n", [(1, 10, "stand-in", "cuMulticastCreate")]),
        ("auto h = elsewhere::cudaMalloc(1);\n", [(1, 21, "qualified-name", "cudaMalloc")]),
        ("#if CUDA_FOO_BAR\n#endif\n", [(1, 5, "unknown-macro", "CUDA_FOO_BAR")]),
        ("#include <cudaFooBar.h>\n", [(1, 10, "include-missing", "cudaFooBar.h")]),
    ],
)  # fmt: skip
def test_a_cuda_name_that_stays_is_reported_at_its_place(
    text: str, wanted: list[tuple[int, int, str, str]]
) -> None:
    assert reports(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "static int cudaCheckAll(int e) { return e; }\nint a = cudaCheckAll(1);\n",
        "#define CUDA_CHECK_X(e) (e)\nint a = CUDA_CHECK_X(1);\n",
        "void f(int cuSeqlens, const int* cuRows) { g(cuSeqlens, cuRows); }\n",
        "enum Kind { cuPlain, cuOther };\nKind k = cuOther;\n",
        "struct cudaBuffer { int n; };\ncudaBuffer* make();\n",
        "using cudaHandleX = int;\ntypedef int* cudaPtrX;\ncudaHandleX h; cudaPtrX p;\n",
        "auto [cuA, cuB] = two();\nint s = cuA + cuB;\n",
        "template <typename cuType> cuType one(cuType x) { return x; }\n",
        "int a, cuNext;\nint b = cuNext;\n",
        "void f() { for (auto& cuEach : all) { use(cuEach); } }\n",
        "struct S { std::vector<Memory<int>> cudaSrcs; };\nvoid f() { cudaSrcs.clear(); }\n",
    ],
)
def test_a_name_that_the_project_declares_is_no_fault(text: str) -> None:
    assert reports(text) == []
    assert output(text) == text


def test_a_spliced_name_is_renamed_and_the_lines_stay() -> None:
    text = "#define WAIT(s) cudaStream\\\r\nSynchronize(s)\r\nint x;\r\n"
    assert output(text) == "#define WAIT(s) hipStreamSynchronize\\\r\n(s)\r\nint x;\r\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("#include<cuda.h>\n", "#include<hip/hip_runtime.h>\n"),
        ('#  include /* a */ "cuda_runtime.h" // b\n',
         '#  include /* a */ "hip/hip_runtime.h" // b\n'),
        ('#include "nccl.h"\n', '#include "rccl/rccl.h"\n'),
        ("#define H <cuda.h>\n#include H\n", "#define H <hip/hip_runtime.h>\n#include H\n"),
        ("#if __has_include(<cuda_fp16.h>)\n#endif\n",
         "#if __has_include(<hip/hip_fp16.h>)\n#endif\n"),
        ('#include "lib/cuda.h"\n', '#include "lib/cuda.h"\n'),
    ],
)  # fmt: skip
def test_includes_in_any_spelling(before: str, after: str) -> None:
    assert output(before) == after


@pytest.mark.report("15")
@pytest.mark.parametrize("path", ["a.h", "a.cuh"])
def test_cooperative_groups_header_is_converted_in_headers_too(path: str) -> None:
    text = (
        "#include <cuda_runtime.h>\n#include <cooperative_groups.h>\n"
        "namespace g = cooperative_groups;\n"
    )
    made = output(text, path)
    assert "#include <hip/hip_cooperative_groups.h>" in made
    assert "namespace g = cooperative_groups;" in made


class TestHeaderThatNvccIncludes:
    kernel = "__global__ void k(float* v) { v[threadIdx.x] = 0; }\n"

    def test_takes_a_blank_line_so_that_no_line_moves(self) -> None:
        made = output(f"// licence\n\n#pragma once\n\n{self.kernel}", "a.cuh")
        assert made == f"// licence\n\n#pragma once\n#include <hip/hip_runtime.h>\n{self.kernel}"

    def test_goes_before_a_comment_when_there_is_no_blank_line(self) -> None:
        made = output(f"/* two\n lines */\n{self.kernel}", "a.cu")
        assert made == f"#include <hip/hip_runtime.h> /* two\n lines */\n{self.kernel}"

    def test_else_keeps_the_numbers_with_a_line_directive(self) -> None:
        result = convert(self.kernel.replace("\n", "\r\n").encode(), "a.cu")
        head = b"#include <hip/hip_runtime.h>\r\n#line 1\r\n"
        assert result.data == head + self.kernel.replace("\n", "\r\n").encode()
        assert result.lines_added == 2

    def test_two_headers_do_not_meet_in_one_line(self) -> None:
        result = convert(b"// c\n\nCUdeviceptr p;\n" + self.kernel.encode(), "a.cu")
        assert result.data.splitlines()[:6] == [
            b"#include <hip/hip_runtime.h>",
            b"#line 1",
            b"// c",
            b'#include "port_hip_compat.h"',
            b"portDrvDeviceptr_t p;",
            self.kernel.strip().encode(),
        ]
        assert result.lines_added == 2

    @pytest.mark.parametrize(
        ("path", "text"),
        [
            ("a.h", kernel),
            ("a.cpp", kernel),
            ("a.cu", "int plain() { return 1; }\n"),
            ("a.cu", "// __global__ only here\nint plain() { return 1; }\n"),
        ],
    )
    def test_is_not_put_where_it_is_not_needed(self, path: str, text: str) -> None:
        assert output(text, path) == text

    def test_replaces_the_header_of_the_api_alone(self) -> None:
        made = output(f"#include <cuda_runtime_api.h>\n{self.kernel}", "a.cu")
        assert made == f"#include <hip/hip_runtime.h>\n{self.kernel}"


class TestConditions:
    def test_code_that_no_hip_build_compiles_needs_no_counterpart(self) -> None:
        text = (
            "#ifdef __HIP_PLATFORM_AMD__\nint a;\n#else\nint a = cuMulticastCreate(b, c);\n#endif\n"
        )
        assert reports(text) == []

    def test_other_arms_do(self) -> None:
        text = "#ifdef SOMETHING\nint a;\n#else\nint a = cuMulticastCreate(b, c);\n#endif\n"
        assert [found[0] for found in reports(text)] == [4]

    def test_a_name_behind_a_version_test_is_that_of_the_later_release(self) -> None:
        use = "int a = cuStreamGetId(b, c);\n"
        assert reports(use, rocm="5.2")
        text = f"#if HIP_VERSION >= 70100000\n{use}#endif\n"
        assert reports(text, rocm="5.2") == []
        assert "hipStreamGetId" in output(text, rocm="5.2")

    def test_a_later_release_may_need_a_wrapper(self) -> None:
        use = "int a = cuMemGetHandleForAddressRange(b, at, n, kind, 0);\n"
        assert reports(use, rocm="6.4")
        text = f"#if HIP_VERSION >= 70100000\n{use}#endif\n"
        assert reports(text, rocm="6.4") == []
        assert "= portDrvMemGetHandleForAddressRange(" in output(text, rocm="6.4")
        assert convert(text.encode(), "a.cpp", "6.4").carried == {
            "cuMemGetHandleForAddressRange@7.1"
        }

    @pytest.mark.parametrize(
        "test",
        ["0", "!defined(__HIP_PLATFORM_AMD__)", "defined(A) && 0", "HIP_VERSION < 60000000",
         "!(1 || defined(B))", "HIP_VERSION_MAJOR <= 5", "((((1)) - 1))"],
    )  # fmt: skip
    def test_tests_that_are_false_for_certain(self, test: str) -> None:
        assert reports(f"#if {test}\nint a = cuMulticastCreate(b, c);\n#endif\n") == []

    @pytest.mark.parametrize(
        "test",
        ["A", "defined(A) || 0", "HIP_VERSION >= 60000000", "f(1)", "1 ? 0 : 1", "(", "A && (", ""],
    )
    def test_tests_that_may_be_true(self, test: str) -> None:
        assert reports(f"#if {test}\nint a = cuMulticastCreate(b, c);\n#endif\n")


@pytest.mark.promise("B07")
@pytest.mark.parametrize(
    "text",
    [
        b"#include a\x9ab\n",
        b"#define a\x9a(n) cuda##n\na\x9a(Free)\n",
        b"constexpr int kWarp\x9aSize = 32;\nint l = threadIdx.x % kWarp\x9aSize;\n",
        b"cuda\x9aFree(); cudaMemcpyToSymbol(a\x9a, b, 1); enum E\x9a { cu\x9aX };\n",
        b"#include <cuda\x9a.h>\n#if CUDA_\x9a && HIP_VERSION > \x9a\n#endif\n",
    ],
)
def test_names_that_are_no_utf8_are_names_like_others(text: bytes) -> None:
    once = convert(text, "a.cu")
    assert once.data.count(b"\x9a") == text.count(b"\x9a")
    assert convert(once.data, "a.cu").data == once.data


_WORDS = [
    *[b"cudaMalloc", b"cudaFree(p)", b"cuMemAlloc(&p, 1);", b"CUdeviceptr d;", b"cudaFoo"],
    *[
        b"#include <cuda.h>\n",
        b"#include <cuda_runtime.h>\n",
        b'#include "cuda.h"',
        b"#pragma once\n",
    ],
    *[
        b"#if ",
        b"#else\n",
        b"#endif\n",
        b"#define X cuda##Free\n",
        b"#line 3\n",
        b"HIP_VERSION >= 7",
    ],
    *[b"\n", b"\r\n", b"\\\n", b"//", b"/*", b"*/", b'"', b"'", b'R"(', b')"', b"::", b".", b"->"],
    *[b"{", b"}", b"namespace a {", b"struct S {", b"int ", b"using ", b"enum E { cudaSuccess }"],
    *[b"<<<1,1>>>", b"__global__ void k() {}", b"threadIdx.x", b"__shfl_sync(m, v, 0)"],
    *[b'dlsym(h, "cuInit")', b"asm volatile(", b"struct cudaDeviceProp p;", b"cuda\\\nFree"],
]
_CODE = st.lists(st.one_of(st.binary(max_size=8), st.sampled_from(_WORDS)), max_size=30)


@pytest.mark.promise("B07")
@pytest.mark.promise("B08")
@given(_CODE, st.sampled_from(["a.cu", "d/a.cuh", "a.h", "a.c", "a.inc", "a.pyx"]))
def test_any_bytes_convert_and_their_output_converts_to_itself(
    pieces: list[bytes], path: str
) -> None:
    data = b"".join(pieces)
    once = convert(data, path)
    assert once.data.count(b"\n") == data.count(b"\n") + once.lines_added
    assert convert(once.data, path).data == once.data


@pytest.mark.promise("B08")
@given(_CODE)
def test_comments_and_the_order_of_line_ends_are_kept(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    once = convert(data, "a.h")
    if once.lines_added == 0:
        assert re.findall(rb"\r?\n", once.data) == re.findall(rb"\r?\n", data)


@pytest.mark.promise("B08")
@given(_CODE)
def test_no_known_cuda_name_is_left_without_a_report(pieces: list[bytes]) -> None:
    result = convert(b"".join(pieces), "a.cpp")
    names = {found.name for found in result.findings}
    kept = [
        result.data[start:end]
        for kind, start, end in lexer.lex(result.data)
        if kind == lexer.IDENT
        and result.data[start:end] in (b"cudaMalloc", b"cudaFree", b"cudaFoo")
    ]
    for name in kept:
        text = name.decode()
        assert any(text in found for found in names) or _is_plain_declaration(result.data, text)


def _is_plain_declaration(data: bytes, name: str) -> bool:
    """Whether the name stands in a directive's text, behind a qualifier, or is declared here."""
    pattern = rf"(?:#\s*(?:pragma|line|error)[^\n]*|(?:\.|->|::)\s*|int\s+|\w\s+){name}"
    return re.search(pattern.encode(), data) is not None


@pytest.mark.promise("B07")
@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        b"(" * 100_000 + b")" * 100_000,
        b"#if (" + b"(" * 100_000 + b"\n#endif\n",
        b"#if " + b"!" * 100_000 + b"1\nint x;\n#endif\n",
        b"{" * 100_000,
        b"#if A\n" * 20_000,
        b"a<" * 100_000,
        b"namespace a {" * 20_000,
        b"cudaFree(" * 50_000,
        b"struct S { int cudaFree; " * 5_000,
    ],
    ids=range(9),
)
def test_deep_nesting_neither_fails_nor_takes_long(data: bytes) -> None:
    assert convert(data, "a.cu").data


def test_halves_that_cublas_brought_are_included_where_they_are_used() -> None:
    text = "#include <cublas_v2.h>\n\n__half *h;\n"
    made = output(text, "a.h")
    assert made == "#include <hipblas/hipblas.h>\n#include <hip/hip_fp16.h>\n__half *h;\n"
    assert output(made, "a.h") == made
    for other in (text.replace("__half", "int"), f"#include <cuda_fp16.h>\n{text}"):
        assert output(other, "a.h").count("hip_fp16.h") == other.count("fp16")
