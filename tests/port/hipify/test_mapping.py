import pytest

from port.errors import InputError
from port.hipify import tables
from port.hipify.mapping import Mapping


def mapping(release="6.4", **overrides):
    return Mapping(release, overrides)


@pytest.mark.parametrize("release", tables.RELEASES)
def test_every_emitted_name_is_declared_by_the_chosen_headers(release):
    chosen = mapping(release)
    hip = tables.load_hip(release)
    entries = [chosen.lookup(name) for name in chosen.cuda]
    named = [each for each in entries if each.how in {"plain", "exception"}]
    assert len(named) > 1500
    assert [each for each in named if each.target not in hip] == []


@pytest.mark.parametrize("release", tables.RELEASES)
def test_every_emitted_header_exists_in_the_chosen_release(release):
    chosen = mapping(release)
    hip = tables.load_hip(release)
    entries = [chosen.include(path) for path in chosen.cuda.headers]
    targets = {each.target for each in entries if each.target and each.path[:7] != "thrust/"}
    assert "hip/hip_runtime.h" in targets
    assert {each for each in targets if each not in hip.headers} == set()


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("cudaMalloc", "hipMalloc"),
        ("cudaStream_t", "hipStream_t"),
        ("CUstream", "hipStream_t"),
        ("CUresult", "hipError_t"),
        ("CUDA_SUCCESS", "hipSuccess"),
        ("CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT", "hipDeviceAttributeMultiprocessorCount"),
        ("cudaDevAttrMultiProcessorCount", "hipDeviceAttributeMultiprocessorCount"),
        ("CUDA_ERROR_INVALID_VALUE", "hipErrorInvalidValue"),
        ("cudaStreamPerThread", "hipStreamPerThread"),
        ("nvrtcCompileProgram", "hiprtcCompileProgram"),
        ("NVRTC_SUCCESS", "HIPRTC_SUCCESS"),
        ("cublasSgemm", "hipblasSgemm"),
        ("curandState", "hiprandState"),
        ("cufftPlan1d", "hipfftPlan1d"),
        ("ncclAllReduce", "ncclAllReduce"),
        ("__nv_bfloat16", "__hip_bfloat16"),
        ("threadIdx", "threadIdx"),
    ],
)
def test_a_name_maps_to_its_counterpart(name, target):
    assert mapping().lookup(name).target == target


def test_a_name_of_the_project_is_no_name_of_cuda():
    assert mapping().lookup("cudaMallocCounted") is None
    assert mapping().lookup("CUDA_CHECK") is None


@pytest.mark.parametrize(
    ("release", "target"),
    [("5.2", "hipDeviceAttributePciDomainID"), ("6.4", "hipDeviceAttributePciDomainID")],
)
def test_spelling_follows_the_release(release, target):
    assert mapping(release).lookup("CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID").target == target


def test_no_counterpart_says_since_when_there_is_one():
    entry = mapping("6.4").lookup("cuMemGetHandleForAddressRange")
    assert (entry.target, entry.how, entry.since) == (None, "none", "7.1")
    assert mapping("7.1").lookup("cuMemGetHandleForAddressRange").target is not None


def test_no_counterpart_at_all():
    entry = mapping().lookup("cuMulticastCreate")
    assert (entry.target, entry.how, entry.since) == (None, "none", None)


def test_a_calling_convention_goes_away():
    assert mapping().lookup("CUDA_CB").how == "drop"


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("cuda.h", "hip/hip_runtime.h"),
        ("cuda_bf16.h", "hip/hip_bf16.h"),
        ("cuda_fp16.h", "hip/hip_fp16.h"),
        ("cooperative_groups.h", "hip/hip_cooperative_groups.h"),
        ("nccl.h", "rccl/rccl.h"),
        ("cublas_v2.h", "hipblas/hipblas.h"),
        ("vector_functions.h", "hip/hip_vector_types.h"),
        ("cub/block/block_reduce.cuh", "hipcub/block/block_reduce.hpp"),
        ("cub/cub.cuh", "hipcub/hipcub.hpp"),
        ("thrust/sort.h", "thrust/sort.h"),
        ("nvml.h", None),
        ("cuda/atomic", None),
    ],
)
def test_a_header_maps_to_its_counterpart(path, target):
    assert mapping().include(path).target == target


def test_a_header_of_the_project_is_left_alone():
    assert mapping().include("cuda_util.h") is None


def test_an_override_wins_and_is_literal():
    chosen = mapping(cudaMalloc="own_malloc", **{"proj/gpu/common.h": "proj/hip/common.h"})
    assert chosen.lookup("cudaMalloc").target == "own_malloc"
    assert chosen.include("proj/gpu/common.h").target == "proj/hip/common.h"


def test_a_release_between_two_tables_uses_the_older_one():
    assert Mapping("6.2").release == "5.7"
    assert Mapping("10.0").release == "7.1"


@pytest.mark.parametrize("release", ["5.1", "4", "newest", ""])
def test_a_release_without_a_table_is_refused(release):
    with pytest.raises(InputError, match=r"ROCm"):
        Mapping(release)


@pytest.mark.parametrize(
    ("guard", "target"),
    [
        ("__CUDA_RUNTIME_H__", "HIP_INCLUDE_HIP_HIP_RUNTIME_H"),
        ("__DRIVER_TYPES_H__", "HIP_INCLUDE_HIP_DRIVER_TYPES_H"),
        ("CUBLAS_V2_H_", "HIPBLAS_H"),
    ],
)
def test_an_include_guard_becomes_that_of_the_header_in_its_place(guard, target):
    assert mapping().lookup(guard).target == target


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("CUstream_st", "ihipStream_t"),
        ("CUgraph_st", "ihipGraph"),
        ("CUmemLocation_st", "hipMemLocation"),
        ("cuMemHostRegister_v2", "hipHostRegister"),
        ("cudaStreamGetCaptureInfo_v2", "hipStreamGetCaptureInfo_v2"),
        ("CU_JIT_MAX_REGISTERS", "hipJitOptionMaxRegisters"),
        ("cublasCgemm", "hipblasCgemm_v2"),
        ("nvrtcGetPTX", "hiprtcGetCode"),
    ],
)
def test_tags_versions_and_spellings(name, target):
    assert mapping().lookup(name).target == target


def test_a_later_table_spells_hipblas_without_a_suffix():
    assert mapping("7.1").lookup("cublasGemmEx").target == "hipblasGemmEx"
    assert mapping("6.4").lookup("cublasGemmEx").target == "hipblasGemmEx_v2"


def test_headers_of_thrust_stay_but_for_those_of_its_own_system():
    mapping = Mapping("6.4")
    assert mapping.include("thrust/sort.h").target == "thrust/sort.h"
    moved = mapping.include("thrust/system/cuda/execution_policy.h").target
    assert moved == "thrust/system/hip/execution_policy.h"
