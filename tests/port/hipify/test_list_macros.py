"""Names in a list macro are symbols as much as calls: a wrapper cannot stand for them."""

from tests.port.hipify.conversion import convert

LIST = """#include <cuda.h>
#define ENTRIES(ENTRY) \\
  ENTRY(allocate, cuMemAlloc) \\
  ENTRY(release, cuMemFree)
CUresult made(CUdeviceptr* address) { return cuMemAlloc(address, 8); }
"""


def test_a_list_keeps_the_name_that_the_library_exports(tmp_path):
    source = tmp_path / "src"
    source.mkdir()
    (source / "entries.cpp").write_text(LIST, encoding="utf-8")
    run = convert(source, tmp_path / "out", "--rocm", "5.2")
    text = run.text("entries.cpp")
    assert run.status == 0
    assert "ENTRY(allocate, hipMalloc)" in text
    assert "ENTRY(release, hipFree)" in text
    # A call still goes through the wrapper, whose address is an integer.
    assert "portDrvMemAlloc(address, 8)" in text
