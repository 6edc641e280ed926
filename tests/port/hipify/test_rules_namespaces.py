"""CUB's namespace becomes hipCUB's wherever the tree includes CUB's headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.port.hipify.conversion import convert
from tests.port.hipify.one_file import output

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "#include <cub/block/block_reduce.cuh>\n"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("typedef cub::BlockReduce<int, 8> R;", "typedef hipcub::BlockReduce<int, 8> R;"),
        ("using R = typename ::cub::KeyValuePair<int, int>;", None),
        ("using namespace cub;", "using namespace hipcub;"),
        ("namespace c = cub;", "namespace c = hipcub;"),
        ("namespace c = ::cub;", "namespace c = ::hipcub;"),
        ("namespace cub { template <> struct Traits<half> {}; }", None),
        ("#define RUN(f, ...) cub::f(__VA_ARGS__)", "#define RUN(f, ...) hipcub::f(__VA_ARGS__)"),
        ("int f() { return ::cub::x + cub::y; }", "int f() { return ::hipcub::x + hipcub::y; }"),
        ("namespace cub = hipcub;", "namespace cub = hipcub;"),
        ("at::cub::sort(a); thrust::cuda_cub::b; c.cub::d(); e.cub;", "same"),
        ('const char *s = "cub::x"; // cub::y', "same"),
    ],
)
def test_names_of_the_namespace(line: str, wanted: str | None) -> None:
    wanted = {None: line.replace("cub", "hipcub"), "same": line}.get(wanted, wanted)
    made = output(HEADER + line + "\n", "a.cuh").splitlines()
    assert made[-1] == wanted
    assert "#include <hipcub/block/block_reduce.hpp>" in made


def test_a_header_that_another_file_brings_counts(tmp_path: Path) -> None:
    source = tmp_path / "src"
    source.mkdir()
    (source / "a.cu").write_text(HEADER + '#include "use.cuh"\n')
    (source / "use.cuh").write_text("using R = cub::BlockReduce<int, 8>;\n")
    assert convert(source, tmp_path / "out").status == 0
    made = (tmp_path / "out" / "use.cuh").read_text()
    assert made.endswith("using R = hipcub::BlockReduce<int, 8>;\n")


def test_a_copy_of_the_headers_stays_and_a_folder_of_that_name_does_not(tmp_path: Path) -> None:
    source = tmp_path / "src"
    for folder in ("cub", "third/cub/cub/block"):
        (source / folder).mkdir(parents=True)
    (source / "cub" / "sort.cu").write_text("#include <cub/cub.cuh>\nint x = cub::y;\n")
    copy = "third/cub/cub/cub.cuh", "third/cub/cub/block/own.cuh"
    for name in copy:
        (source / name).write_text("namespace cub { inline int y; }\n")
    convert(source, tmp_path / "out")
    assert "int x = hipcub::y;" in (tmp_path / "out" / "cub" / "sort.cu").read_text()
    for name in copy:
        assert (tmp_path / "out" / name).read_bytes() == (source / name).read_bytes()


def test_a_namespace_of_the_projects_own_stays(tmp_path: Path) -> None:
    source = tmp_path / "src"
    (source / "cub").mkdir(parents=True)
    text = '#include "cub/cub.cuh"\nint x = cub::y;\n'
    (source / "a.cpp").write_text(text)
    (source / "cub" / "cub.cuh").write_text("namespace cub { inline int y; }\n")
    (source / "b.cpp").write_text("namespace cub { int z; }\nint w = cub::z;\n")
    convert(source, tmp_path / "out")
    for name in ("a.cpp", "b.cpp", "cub/cub.cuh"):
        assert (tmp_path / "out" / name).read_bytes() == (source / name).read_bytes()
