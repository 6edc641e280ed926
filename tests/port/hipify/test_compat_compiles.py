"""The compat header under a compiler, with the real headers of each release."""

from functools import cache

import pytest

from port.hipify import compat_header, convert, tables
from port.hipify.mapping import Mapping
from tests.hip_headers import errors_of

USE = """
#include <stdint.h>
#include <stdio.h>
static int use(const float *host, size_t bytes, hipStream_t stream) {
  CUdeviceptr at = 0, end = 0;
  if (cuMemAlloc(&at, bytes) != hipSuccess) return 1;
  if (at & 0xff) return 2;
  end = (at + bytes + 255) & ~(CUdeviceptr)255;
  printf("%llx %llu\\n", at, (unsigned long long)(end - at) % 7);
  if (cuMemcpyHtoD(at, host, bytes) != hipSuccess) return 3;
  if (cuMemcpyAsync(end - 8, at, 8, stream) != hipSuccess) return 4;
  if (cuMemsetD32Async(at, 0xffu, bytes / 4, stream) != hipSuccess) return 5;
  return cuMemFree(at) == hipSuccess ? 0 : (int)(intptr_t)(void *)(uintptr_t)at;
}
int main(void) { return use(NULL, 16, NULL); }
"""
NAMES = ("CUdeviceptr", "cuMemAlloc", "cuMemcpyHtoD", "cuMemcpyAsync", "cuMemsetD32Async")


@cache
def everything(release):
    """The header with all pieces that need no library's headers."""
    mapping = Mapping(release)
    carried = [name for name in mapping.cuda if mapping.lookup(name).how == "compat"]
    elsewhere = ("cublas", "curand")
    names = [n for n in carried if not mapping.cuda.get(n).header.startswith(elsewhere)]
    return compat_header.render(names, mapping).decode()


@pytest.mark.slow
@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("release", tables.RELEASES)
def test_every_piece_compiles_with_the_headers_of_its_release(release, language):
    assert errors_of(everything(release), release, language) == ""


@pytest.mark.slow
@pytest.mark.parametrize("release", tables.RELEASES)
def test_what_is_made_for_the_oldest_release_compiles_with_all(release):
    """native/hip is made for the oldest release and compiled with each."""
    assert errors_of(everything("5.2"), release, "c++") == ""


@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_device_address_is_an_integer_in_both_languages(language):
    mapping = Mapping("6.4")
    text = USE
    for name in sorted([*NAMES, "cuMemFree"], key=len, reverse=True):
        text = text.replace(name, mapping.lookup(name).target)
    header = compat_header.render([*NAMES, "cuMemFree"], mapping).decode()
    assert errors_of(header + text, "6.4", language) == ""


def test_a_size_is_not_cut():
    """A warning of a narrowing conversion is an error here, so that a 32-bit size would show."""
    mapping = Mapping("6.4")
    header = compat_header.render(["cuMemAlloc"], mapping).decode()
    name = mapping.lookup("cuMemAlloc").target
    call = f"int main() {{ portDrvDeviceptr_t p; return {name}(&p, 1ul << 40); }}"
    assert errors_of(header + call, "6.4", "c++") == ""


@pytest.mark.parametrize("release", ["5.2", "6.4", "7.1"])
def test_a_wrapper_that_only_a_later_release_has_is_behind_its_test(release):
    header = compat_header.render(
        ["CUdeviceptr", "cuMemGetHandleForAddressRange@7.1"], Mapping("5.2")
    ).decode()
    use = (
        "#if HIP_VERSION >= 70100000\n"
        "int go(int *fd, portDrvDeviceptr_t at) {\n"
        "  return portDrvMemGetHandleForAddressRange(\n"
        "      fd, at, 4096, hipMemRangeHandleTypeDmaBufFd, 0);\n"
        "}\n"
        "#endif\n"
        "int main(void) { return 0; }\n"
    )
    assert errors_of(header + use, release, "c") == ""


@pytest.mark.parametrize("arguments", ["0, at", "NULL, 0, at"])
@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_context_is_created_with_and_without_parameters(language, arguments):
    header = compat_header.render(["cuCtxCreate"], Mapping("6.4")).decode()
    name = Mapping("6.4").lookup("cuCtxCreate").target
    call = f"int go(hipCtx_t *made, hipDevice_t at) {{ return {name}(made, {arguments}); }}"
    assert errors_of(header + call, "6.4", language, "-Wno-unused-function") == ""


FORMS = """
#include <cuda.h>
#include <cuda_runtime_api.h>
int use(CUdeviceptr at, void *to, size_t n, CUmemLocation there, struct cudaMemLocation here,
        CUstream s, cudaGraph_t g, cudaGraphExec_t e, cudaGraphNode_t *nodes, cudaGraphNode_t node,
        cudaGraphExecUpdateResultInfo *info, enum cudaGraphExecUpdateResult *result,
        enum cudaStreamCaptureStatus *status, unsigned long long *id,
        const cudaGraphNode_t **more) {
  return cuMemPrefetchAsync(at, n, 0, s) + cuMemPrefetchAsync(at, n, there, 0, s) +
         cuMemPrefetchAsync(at, n, (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, s) +
         cuMemPrefetchAsync_v2(at, n, there, 0, s) + cudaMemPrefetchAsync(to, n, 0, s) +
         cudaMemPrefetchAsync(to, n, here, 0, s) + cudaMemPrefetchAsync_v2(to, n, here, 0, s) +
         cuMemAdvise(at, n, CU_MEM_ADVISE_SET_READ_MOSTLY, 0) +
         cuMemAdvise(at, n, CU_MEM_ADVISE_SET_READ_MOSTLY, there) +
         cuMemAdvise_v2(at, n, CU_MEM_ADVISE_SET_READ_MOSTLY, there) +
         cudaMemAdvise(to, n, cudaMemAdviseSetReadMostly, 0) +
         cudaMemAdvise(to, n, cudaMemAdviseSetReadMostly, here) +
         cudaMemAdvise_v2(to, n, cudaMemAdviseSetReadMostly, here) +
         cudaGraphInstantiate(&e, g, 0) + cudaGraphInstantiate(&e, g, nodes, NULL, 0) +
         cudaGraphAddDependencies(g, nodes, nodes, 1) +
         cudaGraphAddDependencies(g, nodes, nodes, NULL, 1) +
         cudaGraphGetEdges(g, nodes, nodes, &n) +
         cudaGraphGetEdges(g, nodes, nodes, NULL, &n) +
         cudaGraphNodeGetDependencies(node, nodes, &n) +
         cudaGraphNodeGetDependencies(node, nodes, NULL, &n) + cudaGraphExecUpdate(e, g, info) +
         cudaGraphExecUpdate(e, g, nodes, result) + cudaStreamGetCaptureInfo(s, status, id) +
         cudaStreamGetCaptureInfo(s, status, id, &g, more, &n) +
         cudaStreamGetCaptureInfo(s, status, id, &g, more, NULL, &n);
}
"""


@pytest.mark.parametrize("release", ["6.4", "7.1"])
def test_both_forms_of_a_call_compile_in_c(release, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.c").write_text(FORMS)
    assert convert(tmp_path / "in", tmp_path / "out", rocm=release).ok
    text = (tmp_path / "out" / "a.c").read_text()
    header = (tmp_path / "out" / "port_hip_compat.h").read_text()
    text = text.replace('#include "port_hip_compat.h"', header)
    assert errors_of(text, release, "c", "-Wno-sign-conversion") == ""
