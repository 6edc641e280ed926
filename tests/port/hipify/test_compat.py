import re

import pytest

from port.hipify import compat_header, tables
from port.hipify.mapping import Mapping


@pytest.fixture(scope="module", params=tables.RELEASES)
def whole(request):
    """The mapping of a release, the names its header carries, and the header with all of them."""
    mapping = Mapping(request.param)
    carried = [name for name in mapping.cuda if mapping.lookup(name).how == "compat"]
    return mapping, carried, compat_header.render(carried, mapping).decode()


def text_of(*names, release="6.4"):
    return compat_header.render(names, Mapping(release)).decode()


def test_it_names_only_what_the_chosen_headers_declare(whole):
    mapping, _, text = whole
    names = set(
        re.findall(r"\b(?:hip[A-Z]\w*|HIP_\w+|hip_\w+)", re.sub(r"/\*.*?\*/|#include.*", "", text))
    )
    assert len(names) > 100
    assert {name for name in names if name not in mapping.hip} == set()


def test_every_carried_name_is_defined_once(whole):
    mapping, carried, text = whole
    assert len(carried) > 500
    for name in carried:
        target = mapping.lookup(name).target
        assert re.search(rf"\b{target}\b", text), name


def test_sizes_of_cuda_stay_64_bit(whole):
    """A wrapper made from a prototype of CUDA's first driver would cut sizes to 32 bits."""
    mapping, carried, text = whole
    checked = 0
    for name in carried:
        declared = mapping.cuda.get(name)
        target = mapping.lookup(name).target
        match = re.search(rf"static inline hipError_t {target}\(([^)]*)\)", text)
        if declared is None or declared.kind != "function" or match is None:
            continue
        spelled = [each.strip() for each in match[1].split(",")]
        for cuda, mine in zip(declared.parameters, spelled, strict=False):
            if cuda == "size_t" and len(spelled) == len(declared.parameters):
                assert mine.startswith("size_t "), name
                checked += 1
    assert checked > 30


def test_no_argument_is_narrowed_behind_a_pointer(whole):
    _, _, text = whole
    text = text.replace("hipCtxGetApiVersion(context, (int *)version)", "")
    assert not re.search(r"\((?:unsigned )?int \*\)a\d", text)


def test_only_the_parts_that_are_used_are_written():
    text = text_of("cuMemAlloc")
    assert "portDrvMemAlloc(" in text
    assert "typedef unsigned long long portDrvDeviceptr_t;" in text
    assert "portDrvMemcpy" not in text
    assert text.count("static inline") == 1


def test_what_a_piece_needs_comes_before_it():
    text = text_of("cuMemcpy2D", "cuMemcpyPeerAsync")
    assert text.index("portDrvDeviceptr_t;") < text.index("} portDrvMemcpy2D_t;")
    assert text.index("} portDrvMemcpy2D_t;") < text.index("portDrvMemcpy2D(")
    assert text.index("portDrvDeviceOf(hipCtx_t") < text.index("portDrvMemcpyPeerAsync(")


def test_the_same_names_give_the_same_bytes_in_any_order():
    mapping = Mapping("6.4")
    one = compat_header.render(["cuMemAlloc", "cuMemFree", "cuMemcpyDtoH"], mapping)
    assert one == compat_header.render(["cuMemcpyDtoH", "cuMemFree", "cuMemAlloc"], mapping)


def test_a_structure_is_never_passed_for_one_of_another_layout():
    """HIP's hipMemsetParams holds the members of CUDA_MEMSET_NODE_PARAMS in another order."""
    for release in tables.RELEASES:
        entry = Mapping(release).lookup("cuGraphMemsetNodeSetParams")
        assert entry.how != "compat"


def test_the_error_text_calls_follow_the_release():
    assert Mapping("5.2").lookup("cuGetErrorName").how == "compat"
    assert Mapping("5.7").lookup("cuGetErrorName").target == "hipDrvGetErrorName"


def test_a_function_type_has_the_prototype_of_its_version():
    text = text_of("PFN_cuMemUnmap_v10020", "PFN_cuCtxCreate_v3020")
    assert "typedef hipError_t (*portPfnMemUnmap)(portDrvDeviceptr_t, size_t);" in text
    assert "(*portPfnCtxCreate_v3020)(hipCtx_t *, unsigned int, hipDevice_t);" in text


@pytest.mark.parametrize(
    ("name", "symbol"),
    [("cuMemAlloc", "hipMalloc"), ("cuMemCreate", "hipMemCreate"), ("cuMemcpyAsync", None)],
)
def test_a_looked_up_symbol_is_a_function_with_the_same_calling_sequence(name, symbol):
    assert Mapping("6.4").lookup(name).symbol == symbol


@pytest.mark.parametrize(
    ("name", "release", "how"),
    [
        ("__syncwarp", "6.4", "compat"),
        ("__syncwarp", "7.1", "plain"),
        ("__reduce_add_sync", "6.4", "compat"),
        ("__reduce_add_sync", "7.1", "plain"),
        ("__dp4a", "7.1", "compat"),
        ("__trap", "5.2", "compat"),
    ],
)
def test_device_calls_are_carried_until_hip_has_them(name, release, how):
    assert Mapping(release).lookup(name).how == how


def test_device_calls_exist_for_a_compiler_of_device_code_alone():
    text = text_of("__dp4a", "__syncwarp")
    assert text.index("#include <hip/hip_runtime.h>") < text.index("PORT_DEVICE int portDp4a")
    before = text.index("#if defined(__HIP__)", text.index("#define PORT_DEVICE static inline\n"))
    assert before < text.index("PORT_DEVICE int portDp4a")


def test_the_general_product_takes_a_data_type_for_its_computation():
    for release, name in (("6.4", "hipblasGemmEx_v2"), ("7.1", "hipblasGemmEx")):
        assert Mapping(release).lookup("cublasGemmEx").target == name
        text = text_of("cublasGemmEx", release=release)
        assert f"return {name}(" in text
        assert "hipDataType compute" in text
