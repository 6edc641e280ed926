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


def test_calls_that_hip_takes_with_fewer_arguments_are_reported() -> None:
    text = "int r = ::cudaGraphAddNode(\n  &n, g, d, c, p, q);\ncudaGraphAddNode(&n);\n"
    assert rules_on(text).places("arity") == [(1, 11, "cudaGraphAddNode")]


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


def test_build_files_are_read_for_flags() -> None:
    data = b"set(x -gencode arch=compute_80)\n# -arch=sm_70 in a comment\nlink(CUDA::cudart)\n"
    assert [(f.line, f.rule) for f in check("CMakeLists.txt", data)] == [
        (1, "build-flag"),
        (3, "build-flag"),
    ]
    assert is_build_file("sub/setup.py")
    assert not is_build_file("sub/setup.py.txt")


@pytest.mark.parametrize("name", ["cublasGemmEx", "cublasGemmBatchedEx", "cublasScalEx"])
def test_second_interface_of_hipblas_is_noted_at_the_call(name: str) -> None:
    text = f"#include <cublas_v2.h>\nint product() {{\n  return {name}(\n    h, 1);\n}}\n"
    assert rules_on(text, "a.cpp").places("library-interface") == [(3, 10, name)]
    assert not rules_on(text, "a.cpp", rocm="7.1").places("library-interface")


@pytest.mark.parametrize(("given", "places"), [("&with", [(2, 1, "cuCtxCreate")]), ("nullptr", [])])
def test_context_created_with_parameters_is_reported_at_the_call(given: str, places: list) -> None:
    text = f"int open(CUcontext* c, CUctxCreateParams with) {{\ncuCtxCreate(c, {given}, 0, 0);}}"
    assert rules_on(text, "a.cpp").places("context-parameters") == places
