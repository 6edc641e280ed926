"""What stands for a name that HIP lacks: it compiles, does not work, and is an error."""

import pytest

from port.hipify import compat_header, stand_ins, tables
from port.hipify.mapping import Mapping
from tests.hip_headers import errors_of
from tests.port.hipify.one_file import convert, output, reports


def whole(text: str, path: str = "a.cpp", rocm: str = "6.4") -> str:
    """The compat header and the converted text, as a compiler sees them."""
    done = convert(text.encode(), path, rocm)
    mapping = Mapping(rocm, types=("CUstream_flags", "CUctx_flags"))
    body = done.data.decode().replace('#include "port_hip_compat.h"', "")
    return compat_header.render(done.carried, mapping).decode() + body


def test_attributes_and_errors_that_hip_lacks_get_an_unused_value_and_a_report():
    text = (
        "int a = f(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);\n"
        "bool b = r == CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING || r == cudaErrorNotReady;\n"
    )
    assert "f(((hipDeviceAttribute_t)32110))" in output(text)
    assert "r == ((hipError_t)1758) || r == hipErrorNotReady" in output(text)
    assert [found[:3] for found in reports(text)] == [(1, 11, "stand-in"), (2, 15, "stand-in")]


def test_a_function_that_hip_lacks_returns_not_supported_and_is_an_error():
    text = "CUresult f(CUfunction k) { return cuLaunchGrid(k, 1, 2); }\n"
    done = convert(text.encode(), "a.cpp")
    assert "return port_unsupported_cuLaunchGrid(k, 1, 2);" in done.data.decode()
    assert [(f.rule, f.severity) for f in done.findings] == [("stand-in", "error")]
    assert "hipErrorNotSupported" in done.findings[0].message
    header = compat_header.render(done.carried, Mapping("6.4")).decode()
    assert "return hipErrorNotSupported;" in header


def test_the_report_says_from_which_release_on_hip_has_the_name():
    text = "void f(const CUDA_MEMCPY3D_PEER *p) { cuMemcpy3DPeer(p); }\n"
    assert [found[2:] for found in reports(text)] == [
        ("stand-in", "CUDA_MEMCPY3D_PEER"),
        ("stand-in", "cuMemcpy3DPeer"),
    ]
    messages = [f.message for f in convert(text.encode(), "a.cpp").findings]
    assert "HIP has it from 7.1 on" in messages[1]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;", "(hipMemAllocationHandleType)8"),
        ("cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 1);", "((hipLimit_t)1048579)"),
    ],
    ids=["unused in HIP", "another one in HIP"],
)
def test_a_number_is_never_one_that_means_another_enumerator_of_hip(code, expected):
    assert expected in output(f"void f(CUmemAllocationProp prop) {{ {code} }}\n")


@pytest.mark.parametrize("result", ["cufftResult_t", "cublasStatus_t", "nvrtcResult"])
def test_each_status_of_a_library_can_be_a_label_beside_those_that_hip_has(result):
    mapping = Mapping("6.4")
    target = mapping.target_of(result)
    taken = set(mapping.hip.enumerators(mapping.hip.enumeration(target) or target).values())
    named = mapping.cuda.enumerators(result)
    lacking = [name for name in named if mapping.lookup(name).target is None]
    numbers = [int(stand_ins.number(name, mapping).strip("()").split(")")[1]) for name in lacking]
    assert lacking
    assert not taken & set(numbers)
    assert len(set(numbers)) == len({named[name] for name in lacking})
    assert max(numbers) < 1 << max(taken).bit_length()


def test_a_status_that_a_library_of_hip_s_lacks_is_an_error_and_compiles_as_a_label():
    text = "int f(cufftResult r) { switch (r) { case CUFFT_LICENSE_ERROR: return 1; } return 0; }\n"
    assert "case ((hipfftResult_t)15): return 1;" in output(text)
    assert [found[2:] for found in reports(text)] == [("stand-in", "CUFFT_LICENSE_ERROR")]


@pytest.mark.parametrize("name", ["CUDA_VERSION", "CUDART_VERSION", "CUBLAS_VER_MAJOR"])
def test_a_version_in_code_is_what_a_condition_takes_it_for(name):
    text = f"#if {name} >= 12000\n#define MINE {name}\n#endif\nint f() {{ return (int){name}; }}\n"
    assert f"#if {name} >= 12000\n#define MINE port_unsupported_{name}" in output(text)
    assert f"return (int)port_unsupported_{name};" in output(text)
    assert [found[::2] for found in reports(text)] == [
        (line, "version-macro") for line in (1, 2, 4)
    ]
    assert errors_of(f"{whole(text)}static_assert({name} + 1);", "6.4", "c++") != ""
    assert errors_of(f"{whole(text)}static_assert(!port_unsupported_{name});", "6.4", "c++") == ""


@pytest.mark.parametrize("code", ["int v = CUDA_VERSION;", "int r = cuLaunchGrid(k, 1, 2);"])
def test_nothing_stands_for_a_name_in_code_that_no_hip_build_compiles(code):
    text = f"#ifndef __HIP_PLATFORM_AMD__\n{code}\n#endif\n"
    assert output(text) == text
    assert reports(text) == []


def test_a_version_that_the_tree_defines_itself_stays():
    text = "#ifndef CUDA_VERSION\n#define CUDA_VERSION 0\n#endif\nint v = CUDA_VERSION;\n"
    assert output(text) == text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("#ifdef cuLaunchGrid\n#endif\n", "cuLaunchGrid"),
        ("auto p = table->cuLaunchGrid;\n", "cuLaunchGrid"),
        ("#define LIST(X) X(cuLaunchGrid)\n", "cuLaunchGrid"),
    ],
    ids=["condition", "member", "list"],
)
def test_a_name_that_is_no_use_of_the_function_stays(text, name):
    assert name in output(text)
    assert "port_unsupported" not in output(text)


def test_flags_are_of_their_enumeration_where_the_tree_names_it():
    text = "CUstream_flags f = CU_STREAM_NON_BLOCKING;\nint g = CU_EVENT_DEFAULT;\n"
    assert output(text).splitlines()[-2:] == [
        "port_CUstream_flags f = port_CU_STREAM_NON_BLOCKING;",
        "int g = hipEventDefault;",
    ]
    assert reports(text) == []


def test_flags_are_the_macros_of_hip_elsewhere():
    assert output("int f = CU_STREAM_NON_BLOCKING;\n") == "int f = hipStreamNonBlocking;\n"


def test_a_flag_that_hip_lacks_is_reported_beside_those_that_it_has():
    text = "int f(CUctx_flags c) { return c == CU_CTX_SCHED_AUTO || (c & CU_CTX_FLAGS_MASK); }\n"
    assert [found[2:] for found in reports(text)] == [("stand-in", "CU_CTX_FLAGS_MASK")]


def test_it_compiles_and_the_use_is_checked():
    text = (
        "CUresult f(CUfunction k, CUsurfref s, CUarray a) {\n"
        "  CUstream_flags flags = CU_STREAM_DEFAULT;\n"
        "  CUmulticastObjectProp prop = {};\n"
        "  CUmemGenericAllocationHandle handle = {};\n"
        "  prop.numDevices = flags;\n"
        "  if (cuMulticastCreate(&handle, &prop) == CUDA_SUCCESS) return CUDA_SUCCESS;\n"
        "  return cuSurfRefSetArray(s, a, 0);\n"
        "}\n"
    )
    assert errors_of(whole(text), "6.4", "c++", "-Wno-unused-parameter") == ""
    wrong = text.replace("(s, a, 0)", "(a, s, 0)")
    assert "port_unsupported_cuSurfRefSetArray" in errors_of(whole(wrong), "6.4", "c++")


@pytest.mark.slow
@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("release", tables.RELEASES)
def test_every_stand_in_compiles_with_the_headers_of_its_release(release, language):
    types = [n for n in tables.load_cuda() if tables.load_cuda().kind(n) in ("enum", "type")]
    mapping = Mapping(release, types=types)
    lacking = [name for name in mapping.cuda if mapping.lookup(name).target is None]
    names = [name for name in lacking if mapping.stand_in(name) is not None]
    assert len(names) > 300
    flags = [name for name in mapping.cuda if mapping.lookup(name).target == f"port_{name}"]
    assert len(flags) > 20
    text = compat_header.render([*names, *flags], mapping).decode()
    assert errors_of(text, release, language) == ""
