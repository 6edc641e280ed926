"""NVML, which ROCm has nothing like: stand-ins, each place reported."""

from __future__ import annotations

import pytest

from port.hipify import compat_header
from port.hipify.mapping import Mapping
from tests.hip_headers import errors_of
from tests.port.hipify.one_file import convert, output, reports

PROGRAM = """#include <nvml.h>
int watch(unsigned int number) {
  nvmlDevice_t device;
  nvmlFieldValue_t value;
  nvmlPciInfo_t pci;
  char uuid[NVML_DEVICE_UUID_BUFFER_SIZE];
  nvmlMemory_v2_t memory;
  if ((memory.version = nvmlMemory_v2) == 0) return 4;
  nvmlReturn_t status = nvmlInit_v2();
  if (status != NVML_SUCCESS) return nvmlErrorString(status)[0];
  status = nvmlDeviceGetHandleByIndex(number, &device);
  value.fieldId = NVML_FI_DEV_NVLINK_LINK_COUNT;
  if (nvmlDeviceGetFieldValues(device, 1, &value) != NVML_SUCCESS) return 1;
  if (nvmlDeviceGetNvLinkRemotePciInfo(device, 0, &pci) != NVML_SUCCESS) return 2;
  if (nvmlDeviceGetUUID(device, uuid, sizeof uuid) != NVML_SUCCESS) return 3;
  return value.valueType == NVML_VALUE_TYPE_UNSIGNED_INT ? (int)value.value.uiVal : pci.busId[0];
}
"""


def test_each_place_is_an_error() -> None:
    lines = {line for line, _, _, _ in reports(PROGRAM, "a.c")}
    assert lines == {1, *range(3, 17)}
    assert {rule for _, _, rule, _ in reports(PROGRAM, "a.c")} == {"include-unmapped", "stand-in"}


def test_the_header_is_not_included_any_more_but_asked_for_as_before() -> None:
    text = output(f"#if __has_include(<nvml.h>)\n#endif\n{PROGRAM}", "a.c")
    assert "#include <nvml.h>" not in text
    assert "__has_include(<nvml.h>)" in text


@pytest.mark.slow
@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("release", ["5.2", "6.4"])
def test_it_compiles(release: str, language: str) -> None:
    done = convert(PROGRAM.encode(), "a.c", release)
    body = done.data.decode().replace('#include "port_hip_compat.h"', "")
    header = compat_header.render(done.carried, Mapping(release)).decode()
    unused = "-Wno-unused-function"
    assert errors_of(header + body, release, language, unused) == ""
