import time

import pytest

from port.errors import InputError
from port.hipify import installed, tables

CUDA = tables.load_cuda()


def test_a_name_has_its_public_prototype_and_not_the_first_drivers():
    """The header holds a prototype with 32-bit sizes for binaries of the first driver."""
    assert CUDA.get("cuMemAlloc").parameters == ("CUdeviceptr *", "size_t")
    assert CUDA.get("cuMemAlloc").value == "cuMemAlloc_v2"
    assert CUDA.get("cuMemcpyHtoD").parameters == ("CUdeviceptr", "const void *", "size_t")


def test_prototypes_of_older_releases_are_kept():
    declared = CUDA.get("cuCtxCreate")
    assert len(declared.parameters) == 4
    assert ("CUcontext *", "unsigned int", "CUdevice") in declared.older


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        ("CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID", "enumerator", "50"),
        ("cudaErrorInvalidValue", "enumerator", "1"),
        ("CUresult", "type", "enum cudaError_enum"),
        ("NVML_SUCCESS", "enumerator", "0"),
        ("CUBLAS_COMPUTE_32F", "enumerator", "68"),
    ],
)
def test_kinds_and_values(name, kind, value):
    declared = CUDA.get(name)
    assert (declared.kind, declared.value) == (kind, value)


def test_members_are_found_through_typedefs():
    members = CUDA.members("CUDA_MEMCPY2D")
    assert members["srcDevice"] == "CUdeviceptr"
    assert list(members)[:2] == ["srcXInBytes", "srcY"]
    assert "compressionType" not in members
    assert CUDA.members("cudaMalloc") == {}


@pytest.mark.parametrize(
    ("release", "name", "there"),
    [
        ("5.2", "hipDrvGetErrorName", False),
        ("5.7", "hipDrvGetErrorName", True),
        ("6.4", "hipMemGetHandleForAddressRange", False),
        ("7.1", "hipMemGetHandleForAddressRange", True),
        ("6.4", "hipblasGemmEx_v2", True),
        ("6.4", "__float2half", True),
        ("6.4", "__expf", True),
        ("5.2", "ncclAllReduce", True),
    ],
)
def test_what_each_release_declares(release, name, there):
    assert (name in tables.load_hip(release)) is there


def test_member_spelling_by_release():
    assert "requestedHandleTypes" not in tables.load_hip("6.4").members("hipMemAllocationProp")
    assert "requestedHandleTypes" in tables.load_hip("7.1").members("hipMemAllocationProp")


def test_names_of_the_c_library_are_not_cudas():
    assert {"malloc", "printf", "memcpy", "fabs", "sqrt", "size_t", "max"} & set(CUDA) == set()


@pytest.mark.parametrize("release", tables.RELEASES)
def test_each_table_says_what_it_was_read_from(release):
    packages = [each for tree in tables.load_hip(release).sources for each in tree.values()]
    assert any("hip" in str(each) or "triton" in str(each) for each in packages)


def test_headers_of_cuda_are_listed():
    assert {"cuda.h", "cuda_runtime.h", "nvtx3/nvToolsExt.h", "cuda/atomic"} <= CUDA.headers
    assert "hip/hip_runtime.h" not in CUDA.headers


def test_loading_is_quick():
    tables._load.cache_clear()
    start = time.process_time()
    tables.load_cuda()
    tables.load_hip("6.4")
    assert time.process_time() - start < 0.5


def test_there_is_no_table_for_an_unknown_release():
    with pytest.raises(InputError, match=r"5\.2, 5\.7"):
        tables.load_hip("6.3")


def headers_at_hand(folder, version="7.0"):
    major, minor = version.split(".")
    hip = folder / "hip"
    hip.mkdir(parents=True)
    (hip / "hip_version.h").write_text(
        f"#define HIP_VERSION_MAJOR {major}\n#define HIP_VERSION_MINOR {minor}\n"
    )
    (hip / "hip_runtime_api.h").write_text(
        "// hipMemcpy is not declared here\n"
        "hipError_t hipMalloc(void **, size_t);\nhipError_t hipLibraryLoadData(hipLibrary_t *);\n"
    )
    return folder


def test_headers_at_hand_limit_the_names(tmp_path):
    folder = headers_at_hand(tmp_path)
    assert installed.release_of(folder) == "7.0"
    table = installed.table(folder)
    assert "hipMalloc" in table
    assert "hipMemcpy" not in table
    assert table.get("hipMalloc").parameters == ("void **", "size_t")
    assert table.headers == {"hip/hip_version.h", "hip/hip_runtime_api.h"}


def test_headers_at_hand_may_have_names_of_a_later_table(tmp_path):
    table = installed.table(headers_at_hand(tmp_path))
    assert "hipLibraryLoadData" not in tables.load_hip("6.4")
    assert table.get("hipLibraryLoadData").header == "hip/hip_runtime_api.h"


def test_a_folder_without_hip_headers_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"hip_version\.h"):
        installed.table(tmp_path)
