"""The rules for kernels: launches, warps and lanes, assembly."""

from __future__ import annotations

import pytest

from port.hipify import convert
from tests.port.hipify.one_file import output
from tests.port.hipify.rules_on import rules_on


@pytest.mark.report("2")
@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("cudaMemcpyToSymbol(k, &h, sizeof h)", "(HIP_SYMBOL(k), &h"),
        ("cudaMemcpyToSymbolAsync(\n k[1],\n &h, 4, 0, d, s)", "HIP_SYMBOL(k[1]),\n &h"),
        ("cudaMemcpyFromSymbol(&h, ns::k, 4)", "(&h, HIP_SYMBOL(ns::k), 4"),
        ("cudaGetSymbolAddress(&p, k)", "HIP_SYMBOL(k))"),
        ("cudaGetSymbolSize(&n, Box<int, 2>::k)", "HIP_SYMBOL(Box<int, 2>::k))"),
    ],
)
def test_device_symbol_is_wrapped_once(call: str, wanted: str) -> None:
    outcome = rules_on(f"int r = {call};\n")
    assert wanted in outcome.text
    assert outcome.text.count("HIP_SYMBOL") == 1
    assert rules_on(outcome.text).text == outcome.text


@pytest.mark.report("11")
@pytest.mark.parametrize(
    ("argument", "wanted"),
    [
        ("kernel<4>", "reinterpret_cast<const void*>(kernel<4>), cuda"),
        ("kernel<4, float>", "reinterpret_cast<const void*>(kernel<4, float>), cuda"),
        ("&kernel<(8 > 4), int>", "reinterpret_cast<const void*>(&kernel<(8 > 4), int>), cuda"),
        ("(const void*)plain", "((const void*)plain, cuda"),
        ("reinterpret_cast<const void*>(plain)", "(reinterpret_cast<const void*>(plain), cuda"),
    ],
)
def test_kernel_argument_becomes_an_untyped_pointer(argument: str, wanted: str) -> None:
    call = f"cudaFuncSetAttribute({argument}, cudaFuncAttributeMaxDynamicSharedMemorySize, n);"
    assert wanted in rules_on(f"int r = {call}\n").text


def test_kernel_argument_in_c_gets_a_c_cast() -> None:
    text = rules_on("int r = cudaFuncSetCacheConfig(kernel, 1);", "a.c").text
    assert "cudaFuncSetCacheConfig((const void *)(kernel), 1)" in text


@pytest.mark.report("6")
@pytest.mark.parametrize("mask", ["0xffffffff", "0xFFFFFFFFU", "~0u", "-1", "(0xffffffff)"])
def test_full_mask_is_widened(mask: str) -> None:
    outcome = rules_on(f"__device__ int f(int v) {{ return __shfl_sync(\n  {mask}, v, 0); }}\n")
    assert "0xffffffffffffffffull, v, 0" in outcome.text
    assert not outcome.findings


@pytest.mark.report("6")
def test_variable_mask_is_reported_at_the_call() -> None:
    outcome = rules_on("__device__ int f(unsigned m, int v) {\n  return __shfl_sync(m, v, 0);\n}\n")
    assert outcome.places("warp-mask") == [(2, 10, "__shfl_sync")]


@pytest.mark.report("7")
def test_lane_numbers_are_warnings_near_threads_and_nothing_elsewhere() -> None:
    text = (
        "__global__ void k(float* p, int n) {\n"
        "  int lane = threadIdx.x & 31;\n"
        "  int t = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  int w = t >> 5;\n"
        "  int m = (threadIdx.x + 1) % 32;\n"
        "  int aligned = n & 31;\n"
        "  int blocks = (n + 31) / 32;\n"
        "}\n"
    )
    outcome = rules_on(text)
    assert [(p[0], p[2]) for p in outcome.places("warp-width")] == [(2, "31"), (4, "5"), (5, "32")]
    assert all(finding.severity == "warning" for finding in outcome.findings)


@pytest.mark.report("7")
@pytest.mark.parametrize(
    "line", ["#define WARP_SIZE 32", "constexpr int kWarpSize = 32;", "enum { WARPSIZE = 32 };"]
)
def test_warp_size_constants_are_reported(line: str) -> None:
    assert rules_on(f"{line}\n__device__ int f();\n").at(1) == ["warp-width"]


def test_ballot_kept_in_32_bits_is_reported() -> None:
    text = "__device__ int f() {\n  unsigned b = __ballot_sync(~0u, 1);\n  return __popc(b);\n}\n"
    assert rules_on(text).places("warp-width") == [(2, 16, "__ballot_sync")]


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ('asm volatile("membar.gl;" ::: "memory");', True),
        ('__asm__ __volatile__(\n"cp.async.wait_all;\\n" ::);', True),
        ('asm("trap;");', True),
        ('asm("ld." TYPE ".b32 %0, [%1];" : "=r"(a) : "l"(b));', True),
        ('asm volatile("" ::: "memory");', False),
        ("int asm_count = 0;", False),
    ],
)
def test_ptx_is_reported_in_kernel_files(statement: str, found: bool) -> None:
    outcome = rules_on(f"void f() {{ {statement} }}\n")
    assert ("inline-assembly" in outcome.at(1)) is found


def test_assembly_with_pieces_from_macros_is_reported_in_headers() -> None:
    assert rules_on('#define ST(t) asm("st." #t " [%0], %1;" :: "l"(p))\n', "a.h").at(1)


def test_host_assembly_is_left_alone() -> None:
    text = 'void f() { __asm__ volatile("mfence" ::: "memory"); asm("rdtsc" : "=a"(x)); }\n'
    assert not rules_on(text, "a.cpp").findings
    guarded = f"#if defined(__x86_64__)\n{text}#endif\n"
    assert not rules_on(guarded).findings


def test_a_cast_to_a_type_of_kernel_is_still_made_an_untyped_pointer():
    call = "cudaFuncSetAttribute({}, cudaFuncAttributeMaxDynamicSharedMemorySize, n);"
    found = rules_on("void f(int n) { " + call.format("reinterpret_cast<kernel_t>(k)") + " }\n")
    assert "reinterpret_cast<const void*>(reinterpret_cast<kernel_t>(k))" in found.text
    found = rules_on("void f(int n) { " + call.format("reinterpret_cast<const void*>(k)") + " }\n")
    assert found.text.count("reinterpret_cast") == 1


@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("if (__popc(m) == 32) return;", "32"),
        ("if (32 == __popc(__activemask())) return;", "32"),
        ("int first = warp_id << 5;", "5"),
        ("int first = warpIndex * 32;", "32"),
        ("int w = threadIdx.x / blockDim.y; int first = w << 5;", "5"),
        ("if (lane == 31) return;", "31"),
        ("if (lane_id != 0x1f) return;", "0x1f"),
        ("if (laneId < 32) return;", "32"),
    ],
)
def test_numbers_of_lanes_and_warps_are_warned_of(code: str, number: str) -> None:
    outcome = rules_on(f"__global__ void k(unsigned m) {{\n{code}\n}}\n")
    assert number in [name for line, _, name in outcome.places("warp-width") if line == 2]


@pytest.mark.parametrize(
    "code",
    ["int k = x << 5;", "int n = width * 32;", "bool d = day == 31;", "int l = 32 - __clz(m);"],
)
def test_numbers_that_only_look_like_a_warps_are_left(code: str) -> None:
    assert not rules_on(f"__global__ void k(unsigned m) {{ {code} }}\n").places("warp-width")


def test_mask_in_the_definition_of_a_macro_is_a_parameter() -> None:
    text = "#define __shfl_down_sync(mask, value, by) __shfl_down(value, by)\n"
    made = rules_on(text)
    assert made.text == text
    assert made.places("warp-mask") == []


def test_header_of_kernels_with_suffix_hu_is_converted(tmp_path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.hu").write_text("#include <cuda.h>\n")
    convert(tmp_path / "in", tmp_path / "out")
    assert "cuda.h" not in (tmp_path / "out" / "a.hu").read_text()


@pytest.mark.parametrize("suffix", [".cu", ".cuh", ".cu.h", ".cu.cc"])
def test_a_kernel_file_counts_on_the_runtime_header_whatever_its_suffix(suffix: str) -> None:
    text = output("// k\n__global__ void k() {}\n", f"a{suffix}")
    assert "#include <hip/hip_runtime.h>" in text
