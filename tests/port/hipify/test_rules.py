"""Each semantic rule speaks where its kind of fault is, at the exact place, and nowhere else."""

from __future__ import annotations

import re

import pytest

from port.hipify.build_files import check, is_build_file
from port.hipify.rules import MEANINGS
from tests.port.hipify.rules_on import rules_on


def test_every_rule_id_is_plain_and_says_what_it_means() -> None:
    for rule, meaning in MEANINGS.items():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule)
        assert meaning[0].isupper()
        assert not meaning.endswith(".")


@pytest.mark.parametrize(
    ("opened", "wanted"),
    [
        ('dlopen("libcuda.so.1", 1)', '"libamdhip64.so.6"'),
        ('dlopen(path != 0 ? path :\n  "libcudart.so.12", 1)', '"libamdhip64.so.6"'),
        ('LoadLibraryA("libnvrtc.so")', '"libhiprtc.so"'),
    ],
)
def test_library_name_in_an_opening_call_is_renamed(opened: str, wanted: str) -> None:
    outcome = rules_on(f"void* h = {opened};\n", "a.cpp")
    assert wanted in outcome.text
    assert not outcome.findings


def test_soname_follows_the_release() -> None:
    assert "libamdhip64.so.7" in rules_on('int h = dlopen("libcuda.so.1");', rocm="7.1").text
    assert "libamdhip64.so.5" in rules_on('int h = dlopen("libcuda.so.1");', rocm="5.7").text


@pytest.mark.parametrize(
    "name",
    [
        "/opt/cuda/lib64/libcudart.so.12",
        "libnvidia-ml.so.1",
        "libnccl.so.2",
        "nvcuda.dll",
        "libcudart.so.%d",
        "libcuda",
    ],
)
def test_library_name_that_cannot_follow_is_reported(name: str) -> None:
    outcome = rules_on(f'int n;\nvoid* h = dlopen("{name}", 1);\n', "a.cpp")
    assert outcome.places("library-name") == [(2, 18, name)]
    assert name in outcome.text


def test_names_that_only_resemble_a_library_are_left_alone() -> None:
    assert not rules_on('auto a = open("libcudaish.so"), b = "mylibcuda.so.1x";').findings


def test_symbol_that_is_looked_up_is_renamed_and_data_is_kept() -> None:
    outcome = rules_on(
        'auto f = dlsym(\n    handle,\n    "cuMemCreate");\nbool b = name == "cudaMalloc";\n',
        "a.cpp",
    )
    assert '"hipMemCreate"' in outcome.text
    assert '"cudaMalloc"' in outcome.text
    assert outcome.places("string-name") == [(4, 18, "cudaMalloc")]


def test_symbol_is_what_the_library_exports() -> None:
    text = 'auto f = dlsym(h, "cuMemAlloc_v2"), g = dlsym(h, "cudaGetDeviceProperties");'
    outcome = rules_on(text, "a.cpp")
    assert '(h, "hipMalloc")' in outcome.text
    assert '(h, "hipGetDevicePropertiesR0600")' in outcome.text


def test_symbol_without_counterpart_is_reported() -> None:
    outcome = rules_on('auto f = dlsym(h, "cuMulticastCreate");', "a.cpp")
    assert outcome.at(1) == ["symbol-name"]


def test_environment_variables_are_reported_wherever_they_are_named() -> None:
    outcome = rules_on('auto a = getenv("CUDA_VISIBLE_DEVICES");\nauto b = "CUDA_MINE";\n')
    assert outcome.places("environment-variable") == [(1, 17, "CUDA_VISIBLE_DEVICES")]


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


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("cuda::atomic<int> a;", ["cuda::atomic"]),
        ("auto b = ::cuda::std::min(1, 2);", ["cuda::std"]),
        ("return cuda::proclaim_return_type<int>(f);", ["cuda::proclaim_return_type"]),
        ("using namespace nvcuda;", ["namespace nvcuda"]),
        ("auto s = at::cuda::getCurrentCUDAStream();", []),
        ("torch::cuda::synchronize();", []),
        ("app::cuda::atomic c;", []),
        ("config.cuda::x;", []),
    ],
)
def test_libcudacxx_names(line: str, names: list[str]) -> None:
    assert [p[2] for p in rules_on(f"{line}\n").places("libcudacxx")] == names


@pytest.mark.parametrize("space", ["thrust::cuda", "thrust::system::cuda", "::thrust::cuda"])
def test_namespace_of_thrust_is_renamed(space: str) -> None:
    outcome = rules_on(f"sort({space}::par.on(s), a, b); at::cuda::par(); system::cuda::f();\n")
    wanted = space.removesuffix("cuda") + "hip"
    assert outcome.text.startswith(f"sort({wanted}::par.on(s), a, b);")
    assert outcome.text.endswith("at::cuda::par(); system::cuda::f();\n")
    assert not outcome.findings


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
    outcome = rules_on("#ifndef CUDART_VERSION\n#define CUDART_VERSION 1\n#endif\n")
    assert outcome.places("version-macro") == [(1, 9, "CUDART_VERSION")]


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


def test_jit_options_and_kernel_text() -> None:
    text = (
        "nvrtcResult f(nvrtcProgram p) {\n"
        '  const char* o[] = {"-arch=sm_80", "--std=c++17", "-default-device"};\n'
        '  const char* k = R"(\n__global__ void k() {\n  __syncwarp(); asm("x");\n}\n)";\n'
        "}\n"
    )
    outcome = rules_on(text, "a.cpp")
    assert [p[2] for p in outcome.places("jit-option")] == ["-arch=sm_80", "-default-device"]
    assert [p[0] for p in outcome.places("jit-source")] == [3, 5]
    assert outcome.text == text


def test_architecture_option_is_seen_in_any_file() -> None:
    assert rules_on('auto o = "--gpu-architecture=compute_90";', "a.cpp").at(1) == ["jit-option"]
    assert not rules_on('auto o = "sm_90 is a name", p = "-archive";', "a.cpp").findings


def test_prose_about_kernels_is_left_alone() -> None:
    assert not rules_on(
        'const char* t = R"(cudaMalloc( failed)", *u = "fill<<<1, 2>>>(p)";'
    ).findings


def test_members_follow_the_release() -> None:
    text = (
        "void f(CUmemAllocationProp* p) {\n"
        "  CUmemAllocationProp q = {.requestedHandleTypes = x};\n"
        "  p->requestedHandleTypes = q.requestedHandleTypes;\n"
        "  p->location.id = 1;\n"
        "}\n"
    )
    old = rules_on(text, "a.cpp", "6.4")
    assert old.text.count("requestedHandleType ") == 2
    assert "q.requestedHandleType;" in old.text
    assert rules_on(text, "a.cpp", "7.1").text == text
    assert not old.findings


def test_member_that_hip_lacks_is_reported() -> None:
    outcome = rules_on("int f(cudaDeviceProp& d) {\n  return d.mpsEnabled + d.warpSize;\n}\n")
    assert outcome.places("member-name") == [(2, 12, "mpsEnabled")]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("cuDeviceGetAttribute(&v, 75, d);", ["enum-number"]),
        ("cudaDeviceGetAttribute(&v, (cudaDeviceAttr)16, d);", ["enum-number"]),
        ("auto a = static_cast<enum cudaDeviceAttr>(0x10);", ["enum-number"]),
        ("auto a = CUdevice_attribute{16};", ["enum-number"]),
        ("static_assert((int)cudaDevAttrMultiProcessorCount == 16);", ["enum-value"]),
        ("static_assert(16 == cudaDevAttrMultiProcessorCount);", ["enum-value"]),
        ("static_assert(static_cast<int>(cudaErrorInvalidValue) == 1);", []),
        ("cudaMemcpy(a, b, n, (cudaMemcpyKind)2);", []),
        ("CUdevice_attribute a = 75;", ["enum-number"]),
        ("CUdevice_attribute a;  f(a == 16);", ["enum-number"]),
        ("cudaMemcpyKind k = 2;", []),
        ("CUdevice_attribute a = b; int n = 16;", []),
        ("if (v == cudaDevAttrMultiProcessorCount) f(16);", []),
    ],
)
def test_numbers_for_enumerators(line: str, found: list[str]) -> None:
    assert rules_on(f"{line}\n", "a.cpp").at(1) == found


@pytest.mark.parametrize(
    "definition",
    [
        "#define WANTED 75",
        "#define WANTED (75)",
        "constexpr int WANTED = 75;",
        "static const unsigned first = 1, WANTED = 0x4bU;",
        "constexpr int WANTED{75};",
        "enum { OTHER = 74, WANTED };",
        "enum Mine : int { WANTED = 75, };",
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        "auto a = static_cast<CUdevice_attribute>(WANTED);",
        "cuDeviceGetAttribute(&v, WANTED, d);",
        "cuDeviceGetAttribute(&v, (CUdevice_attribute)WANTED, d);",
    ],
)
def test_named_constants_for_enumerators(definition: str, use: str) -> None:
    outcome = rules_on(f"{definition}\n{use}\n", "a.cpp")
    assert outcome.at(2) == ["enum-number"]
    (finding,) = outcome.findings
    assert "WANTED (75)" in finding.message


@pytest.mark.parametrize(
    "before",
    [
        "constexpr int WANTED = compute(75);",
        "int WANTED = 75;",
        "#define WANTED 75\n#undef WANTED\n#define WANTED 76",
        "const int WANTED = 75;\nvoid f(int WANTED);",
    ],
)
def test_names_that_are_not_one_constant_are_left_alone(before: str) -> None:
    text = f"{before}\nauto a = static_cast<CUdevice_attribute>(WANTED);\n"
    assert not rules_on(text, "a.cpp").findings


def test_member_of_an_enumeration_compared_with_a_number_follows_the_release() -> None:
    text = "bool f(cudaPointerAttributes* a) {\n  return a->type == 2 || a->device == 2;\n}\n"
    assert rules_on(text, "a.cpp", "5.7").places("enum-number") == [(2, 21, "2")]
    assert not rules_on(text, "a.cpp", "6.4").findings


def test_calls_that_hip_takes_with_fewer_arguments_are_reported() -> None:
    text = "int r = ::cudaGraphAddNode(\n  &n, g, d, c, p, q);\ncudaGraphAddNode(&n);\n"
    assert rules_on(text).places("arity") == [(1, 11, "cudaGraphAddNode")]


def test_merged_case_labels_overloads_and_specialisations() -> None:
    text = (
        "void f(int e) { switch (e) {\n"
        "  case CUDA_ERROR_INVALID_VALUE: break;\n"
        "  case cudaErrorInvalidValue: break;\n"
        "  case cudaErrorNotReady: break; } }\n"
        "inline int of(CUresult a) { return 1; }\n"
        "inline int of(cudaError_t b) { return 2; }\n"
        "inline int of(cudaStream_t c) { return 3; }\n"
        "template <> struct Name<CUstream> { };\n"
        "template <> struct Name<cudaStream_t> { };\n"
        "template <> int code<CUresult>() { return 1; }\n"
        "template <> int code<cudaError_t>() { return 2; }\n"
    )
    assert [p[0] for p in rules_on(text, "a.cpp").places("merged-names")] == [3, 6, 9, 11]


def test_list_macro_with_entries_that_become_one_is_reported() -> None:
    text = "#define ALL(X) X(CUDA_ERROR_NOT_READY) \\\n  X(cudaErrorNotReady) X(CUDA_SUCCESS)\n"
    assert rules_on(text, "a.cpp").places("merged-names") == [(2, 5, "cudaErrorNotReady")]


def test_versioned_lookup_is_reported_at_the_call() -> None:
    text = 'int r = cuGetProcAddress(\n  "cuMemMap", &f, 12000, 0, &s);\n'
    outcome = rules_on(text, "a.cpp")
    assert outcome.places("versioned-lookup") == [(1, 9, "cuGetProcAddress")]


@pytest.mark.report("12")
def test_torch_headers_move_and_its_names_stay() -> None:
    text = (
        "#include <ATen/cuda/CUDAContext.h>\n"
        '#include "c10/cuda/CUDAGuard.h"\n'
        "#include <ATen/cuda/Exceptions.h>\n"
        "#include <torch/extension.h>\n"
        "auto s = at::cuda::getCurrentCUDAStream().stream();\n"
    )
    outcome = rules_on(text, "a.cpp")
    assert "<ATen/hip/HIPContext.h>" in outcome.text
    assert '"c10/hip/HIPGuard.h"' in outcome.text
    assert "<ATen/hip/Exceptions.h>" in outcome.text
    assert (
        "<torch/extension.h>\nauto s = at::cuda::getCurrentCUDAStream().stream();" in outcome.text
    )
    assert not outcome.findings


def test_macro_that_names_a_header_is_mapped_or_reported() -> None:
    outcome = rules_on('#define A <cuda.h>\n#define B "cudnn.h"\n#define C <own.h>\n', "a.c")
    assert "#define A <hip/hip_runtime.h>\n" in outcome.text
    assert outcome.places("macro-include") == [(2, 11, "cudnn.h")]


def test_build_files_are_read_for_flags() -> None:
    data = b"set(x -gencode arch=compute_80)\n# -arch=sm_70 in a comment\nlink(CUDA::cudart)\n"
    assert [(f.line, f.rule) for f in check("CMakeLists.txt", data)] == [
        (1, "build-flag"),
        (3, "build-flag"),
    ]
    assert is_build_file("sub/setup.py")
    assert not is_build_file("sub/setup.py.txt")


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


@pytest.mark.parametrize("name", ["cublasGemmEx", "cublasGemmBatchedEx", "cublasScalEx"])
def test_second_interface_of_hipblas_is_noted_at_the_call(name: str) -> None:
    text = f"#include <cublas_v2.h>\nint product() {{\n  return {name}(\n    h, 1);\n}}\n"
    assert rules_on(text, "a.cpp").places("library-interface") == [(3, 10, name)]
    assert not rules_on(text, "a.cpp", rocm="7.1").places("library-interface")


@pytest.mark.parametrize("condition", ["asked", "(asked)", "static_cast<int>(asked)", "(int)asked"])
def test_number_as_a_case_label_of_an_enumeration_is_reported(condition: str) -> None:
    text = (
        "int kind(cudaDeviceAttr asked) {\n"
        f"  switch ({condition}) {{\n"
        "    case 16: return 1;\n"
        "    case cudaDevAttrWarpSize: return 2;\n"
        "  }\n"
        "  switch (asked ? 1 : 2) { case 75: return 4; }\n"
        "  return 0;\n"
        "}\n"
    )
    assert rules_on(text, "a.cpp").places("enum-number") == [(3, 10, "16")]


def test_trigraphs_that_hide_a_directive_or_split_a_name_are_reported() -> None:
    text = (
        '??=include <cuda.h>\nint a; // why??/\n// so??=\ncuda??/\nStream_t s;\nauto t = "x??/";\n'
    )
    outcome = rules_on(text, "a.c")
    assert outcome.places("trigraph") == [(1, 1, "??="), (4, 5, "??/")]


@pytest.mark.parametrize(("given", "places"), [("&with", [(2, 1, "cuCtxCreate")]), ("nullptr", [])])
def test_context_created_with_parameters_is_reported_at_the_call(given: str, places: list) -> None:
    text = f"int open(CUcontext* c, CUctxCreateParams with) {{\ncuCtxCreate(c, {given}, 0, 0);}}"
    assert rules_on(text, "a.cpp").places("context-parameters") == places
