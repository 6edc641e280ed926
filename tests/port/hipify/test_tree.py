"""Whole trees: every file has an output, nothing else is written, and what cannot be is told."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from port.errors import InputError
from port.hipify import convert

CODE = "#include <cuda_runtime.h>\nint drop(void* p) { return cudaFree(p); }\n"
CONVERTED = "#include <hip/hip_runtime.h>\nint drop(void* p) { return hipFree(p); }\n"


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def files_in(root: Path) -> dict[str, bytes]:
    """Every file below `root` by relative path, the record folder left out."""
    found = {}
    for place, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".hipify"]
        for name in names:
            path = Path(place, name)
            found[str(path.relative_to(root))] = path.read_bytes()
    return found


def snapshot(root: Path) -> list[tuple[str, int, int]]:
    """(path, inode, change time) of everything below `root`."""
    found = []
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        found.append((str(path), status.st_ino, status.st_mtime_ns))
    return found


def rules(outcome: object) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for finding in outcome.conversion.findings:  # type: ignore[attr-defined]
        found.setdefault(finding.file, set()).add(finding.rule)
    return found


def test_every_file_has_an_output_at_its_place_and_mode(tmp_path: Path) -> None:
    data = bytes(range(256))
    source = write(
        tmp_path / "in", {"a.cu": CODE, "d/e/b.h": CODE, "d/p.bin": data, "R.md": "cudaX"}
    )
    (source / "d/p.bin").chmod(0o755)
    out = tmp_path / "out"
    outcome = convert(source, out)
    assert outcome.ok
    assert files_in(out) == {
        "a.cu": CONVERTED.encode(),
        "d/e/b.h": CONVERTED.encode(),
        "d/p.bin": data,
        "R.md": b"cudaX",
    }
    assert stat.S_IMODE((out / "d/p.bin").stat().st_mode) == 0o755
    assert outcome.conversion.counts == {
        "converted": 2,
        "unchanged": 0,
        "hip-already": 0,
        "copied": 2,
        "failed": 0,
    }


def test_one_file_goes_into_the_folder(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"a.cu": CODE})
    assert convert(source / "a.cu", tmp_path / "out").ok
    assert files_in(tmp_path / "out") == {"a.cu": CONVERTED.encode()}


def test_a_second_run_writes_nothing(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"a.cu": CODE, "d/b.txt": "x", "c.cpp": "CUdeviceptr p;\n"})
    out = tmp_path / "out"
    convert(source, out)
    before = snapshot(out)
    outcome = convert(source, out)
    assert not outcome.changes.any
    assert snapshot(out) == before


@pytest.mark.report("3")
def test_a_tree_that_was_converted_before_comes_out_as_it_is(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"a.cu": CODE, "d/b.txt": "x", "d/c.cpp": "CUdeviceptr p;\n"})
    assert convert(source, tmp_path / "a").ok
    outcome = convert(tmp_path / "a", tmp_path / "b")
    assert outcome.ok
    assert files_in(tmp_path / "a") == files_in(tmp_path / "b")
    for name in (".gitignore", "cache.json", "manifest.json"):
        one, two = (tmp_path / each / ".hipify" / name for each in "ab")
        assert one.read_bytes() == two.read_bytes()
    before = snapshot(tmp_path / "b")
    convert(tmp_path / "a", tmp_path / "b")
    assert snapshot(tmp_path / "b") == before


@pytest.mark.report("8")
def test_each_input_has_exactly_one_status(tmp_path: Path) -> None:
    source = write(
        tmp_path / "in",
        {
            "converted.cu": CODE,
            "plain.cpp": "int one() { return 1; }\n",
            "notes.txt": "cudaFree",
            "done.cpp": CONVERTED,
        },
    )
    (source / "gone.cu").symlink_to("nowhere.cu")
    outcome = convert(source, tmp_path / "out")
    assert {each.file: each.status for each in outcome.conversion.files} == {
        "converted.cu": "converted",
        "plain.cpp": "unchanged",
        "notes.txt": "copied",
        "done.cpp": "hip-already",
        "gone.cu": "failed",
    }
    assert sum(outcome.conversion.counts.values()) == 5
    assert not outcome.ok


@pytest.mark.report("17")
def test_a_suffix_that_is_not_looked_at_is_told_and_can_be_added(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"k.pyx": "x = cudaMalloc(&p, 1)  # cudaMalloc\n"})
    outcome = convert(source, tmp_path / "out")
    assert outcome.ok
    assert outcome.conversion.counts["copied"] == 1
    assert rules(outcome) == {"k.pyx": {"not-looked-at"}}
    assert convert(source, tmp_path / "out", extensions=[".pyx"]).ok
    assert files_in(tmp_path / "out") == {"k.pyx": b"x = hipMalloc(&p, 1)  # cudaMalloc\n"}


def test_python_files_that_open_cuda_libraries_are_reported(tmp_path: Path) -> None:
    text = (
        "import ctypes, ctypes.util\n"
        "cuda = ctypes.CDLL('libcuda.so.1')\n"
        'runtime = ctypes.CDLL(f"libcudart.so.{major}", mode=ctypes.RTLD_GLOBAL)\n'
        'nvml = ctypes.CDLL(ctypes.util.find_library("nvidia-ml"))\n'
        'c = ctypes.CDLL("libc.so.6")\n'
        '"""Opens libcuda.so.1 where there is one."""\n'
        'names = {"cuda": "libcuda"}  # libcuda.so.1\n'
    )
    write(tmp_path / "src", {"pkg/driver.py": text, "setup.py": "open('libcudart.so')\n"})
    outcome = convert(tmp_path / "src", tmp_path / "out")
    found = outcome.conversion.findings
    assert [(f.file, f.line, f.column, f.rule) for f in found] == [
        ("pkg/driver.py", 2, 20, "library-name"),
        ("pkg/driver.py", 3, 23, "library-name"),
        ("pkg/driver.py", 4, 45, "library-name"),
        ("pkg/driver.py", 7, 18, "library-name"),
        ("setup.py", 1, 6, "library-name"),
    ]
    assert "libamdhip64.so" in found[0].remedy
    assert outcome.ok
    assert (tmp_path / "out/pkg/driver.py").read_text() == text


@pytest.mark.report("18")
def test_odd_files_do_not_end_the_conversion(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"good.cu": CODE, "y.cu/inner.cu": CODE})
    (source / "x.cu").symlink_to("nowhere.cu")
    os.mkfifo(source / "pipe.cu")
    outcome = convert(source, tmp_path / "out")
    assert not outcome.ok
    assert files_in(tmp_path / "out") == {
        "good.cu": CONVERTED.encode(),
        "y.cu/inner.cu": CONVERTED.encode(),
    }
    assert rules(outcome) == {
        "x.cu": {"link-dangling"},
        "y.cu": {"folder-suffix"},
        "pipe.cu": {"unreadable"},
    }


def test_outputs_whose_source_is_gone_are_removed_and_no_others(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"a.cu": CODE, "d/b.cu": CODE, "d/c.cu": CODE})
    out = tmp_path / "out"
    convert(source, out)
    write(out, {"d/mine.txt": "kept", "d/c.cu": "edited\n"})
    for name in ("d/b.cu", "d/c.cu"):
        (source / name).unlink()
    outcome = convert(source, out)
    assert outcome.changes.pruned == ("d/b.cu",)
    assert rules(outcome) == {"d/c.cu": {"output-edited"}}
    assert set(files_in(out)) == {"a.cu", "d/mine.txt", "d/c.cu"}


def test_an_output_edited_by_hand_is_made_again(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"a.cu": CODE})
    convert(source, tmp_path / "out")
    write(tmp_path / "out", {"a.cu": "edited\n"})
    assert convert(source, tmp_path / "out").changes.written == ("a.cu",)
    assert files_in(tmp_path / "out") == {"a.cu": CONVERTED.encode()}


def test_a_file_of_someone_else_is_never_overwritten(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"a.cu": CODE, "b.cu": CODE})
    out = write(tmp_path / "out", {"a.cu": "mine\n"})
    for _ in range(2):
        outcome = convert(source, out)
        assert rules(outcome) == {"a.cu": {"output-foreign"}}
        assert files_in(out) == {"a.cu": b"mine\n", "b.cu": CONVERTED.encode()}


def test_check_writes_nothing_and_tells_a_difference(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"a.cu": CODE})
    out = tmp_path / "out"
    assert not convert(source, out, check=True).ok
    assert not out.exists()
    convert(source, out)
    before = snapshot(out)
    assert convert(source, out, check=True).ok
    write(source, {"b.cu": CODE})
    assert convert(source, out, check=True).changes.written == ("b.cu",)
    assert snapshot(out) == before


def test_the_cache_follows_what_other_files_declare(tmp_path: Path) -> None:
    use = "int a = cudaThing(1);\n"
    source = write(tmp_path / "in", {"a.cpp": use})
    assert not convert(source, tmp_path / "out").ok
    write(source, {"own.h": "int cudaThing(int);\n"})
    assert convert(source, tmp_path / "out").ok
    (source / "own.h").unlink()
    assert not convert(source, tmp_path / "out").ok


def test_findings_of_an_unchanged_tree_are_told_again(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"a.cpp": "int a = cuMulticastCreate(1, 2);\n"})
    first = convert(source, tmp_path / "out").conversion.findings
    assert first
    assert convert(source, tmp_path / "out").conversion.findings == first


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"tool": 1}', b"\xff\xfe", b"null", b"[" * 100_000],
    ids=["empty", "begun", "list", "other", "bytes", "null", "deep"],
)
@pytest.mark.parametrize("name", ["cache.json", "manifest.json", "pending.json"])
def test_a_broken_record_is_as_none(tmp_path: Path, name: str, content: bytes) -> None:
    source = write(tmp_path / "in", {"a.cu": CODE})
    convert(source, tmp_path / "out")
    write(tmp_path / "out", {f".hipify/{name}": content})
    assert convert(source, tmp_path / "out").ok
    assert files_in(tmp_path / "out") == {"a.cu": CONVERTED.encode()}


def test_a_cache_with_a_byte_changed_hides_no_finding(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"a.cpp": "int a = cuMulticastCreate(1, 2);\n"})
    first = convert(source, tmp_path / "out").conversion.findings
    cache = tmp_path / "out/.hipify/cache.json"
    assert b'"error"' in cache.read_bytes()
    cache.write_bytes(cache.read_bytes().replace(b'"error"', b'"notes"'))
    assert convert(source, tmp_path / "out").conversion.findings == first


@pytest.mark.promise("B06")
def test_a_manifest_that_names_places_outside_removes_nothing_there(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"a.cu": CODE})
    outside = write(tmp_path, {"precious.txt": "x"}) / "precious.txt"
    convert(source, tmp_path / "out")
    record = tmp_path / "out/.hipify/manifest.json"
    manifest = json.loads(record.read_text())
    entry = {
        "source": None,
        "output": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
    }
    manifest["files"] |= {
        "../precious.txt": entry,
        str(outside): entry,
        "d/../../precious.txt": entry,
    }
    record.write_text(json.dumps(manifest))
    convert(source, tmp_path / "out")
    assert outside.read_text() == "x"


@pytest.mark.promise("B06")
class TestPlaces:
    @pytest.mark.parametrize("out", ["in", "in/out", "in/../in/out", "link", "link/out", "."])
    def test_output_and_source_inside_each_other_are_refused(
        self, tmp_path: Path, out: str
    ) -> None:
        write(tmp_path / "in", {"a.cu": CODE})
        (tmp_path / "link").symlink_to("in")
        before = snapshot(tmp_path)
        with pytest.raises(InputError, match="folder"):
            convert(tmp_path / "in", tmp_path / out)
        assert snapshot(tmp_path) == before

    def test_the_folder_of_a_single_file_is_refused(self, tmp_path: Path) -> None:
        source = write(tmp_path / "in", {"a.cu": CODE})
        with pytest.raises(InputError, match="elsewhere"):
            convert(source / "a.cu", source)

    def test_a_source_folder_behind_a_link_is_converted(self, tmp_path: Path) -> None:
        write(tmp_path / "real", {"a.cu": CODE})
        (tmp_path / "link").symlink_to("real")
        assert convert(tmp_path / "link", tmp_path / "out").ok
        assert files_in(tmp_path / "out") == {"a.cu": CONVERTED.encode()}

    def test_links_in_the_source(self, tmp_path: Path) -> None:
        source = write(tmp_path / "in", {"d/a.cu": CODE, "e/x.txt": "x"})
        outside = write(tmp_path, {"secret.h": CODE})
        (source / "twin.cu").symlink_to("d/a.cu")
        (source / "e/d").symlink_to("../d")
        (source / "d/loop").symlink_to("..")
        (source / "self").symlink_to("self")
        (source / "secret.h").symlink_to(outside / "secret.h")
        (source / "up").symlink_to("../..")
        outcome = convert(source, tmp_path / "out")
        made = files_in(tmp_path / "out")
        assert set(made) == {"d/a.cu", "e/x.txt", "twin.cu", "e/d/a.cu"}
        assert made["twin.cu"] == CONVERTED.encode()
        found = rules(outcome)
        assert found["secret.h"] == found["up"] == {"link-outside"}
        assert found["d/loop"] == {"link-loop"}
        assert found["self"] == {"link-dangling"}
        assert not any(path.is_symlink() for path in (tmp_path / "out").rglob("*"))

    def test_links_in_the_output_are_not_followed(self, tmp_path: Path) -> None:
        source = write(tmp_path / "in", {"d/a.cu": CODE, "b.cu": CODE})
        elsewhere = write(tmp_path / "elsewhere", {"b.cu": "mine"})
        out = tmp_path / "out"
        out.mkdir()
        (out / "d").symlink_to(elsewhere)
        (out / "b.cu").symlink_to(elsewhere / "b.cu")
        outcome = convert(source, out)
        assert rules(outcome) == {"d/a.cu": {"output-blocked"}, "b.cu": {"output-blocked"}}
        assert files_in(elsewhere) == {"b.cu": b"mine"}

    def test_a_record_folder_that_is_a_link_is_refused(self, tmp_path: Path) -> None:
        source = write(tmp_path / "in", {"a.cu": CODE})
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "out").mkdir()
        (tmp_path / "out/.hipify").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(InputError, match="cannot be written"):
            convert(source, tmp_path / "out")
        assert not list((tmp_path / "elsewhere").iterdir())

    def test_names_that_differ_in_case_alone_are_both_written_and_told(
        self, tmp_path: Path
    ) -> None:
        source = write(tmp_path / "in", {"A.cu": CODE, "a.cu": CODE})
        outcome = convert(source, tmp_path / "out")
        assert outcome.ok
        assert set(files_in(tmp_path / "out")) == {"A.cu", "a.cu"}
        assert rules(outcome) == {"a.cu": {"case-twins"}}


_NAME = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0", exclude_categories=["Cs"])
    | st.just("\udc80"),
    min_size=1,
    max_size=8,
).filter(lambda name: name not in (".", "..", ".hipify"))


@pytest.mark.promise("B06")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.lists(_NAME, min_size=1, max_size=3), st.binary(max_size=20)), max_size=6)
)
def test_whatever_the_names_only_the_output_folder_is_written(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[list[str], bytes]]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    source = root / "in"
    source.mkdir()
    wanted = {}
    for parts, data in entries:
        path = source.joinpath(*parts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError:
            continue
        wanted[str(path.relative_to(source))] = path
    before = snapshot(source)
    convert(source, root / "out")
    assert snapshot(source) == before
    assert {path.name for path in root.iterdir()} == {"in", "out"}
    assert set(files_in(root / "out")) == set(wanted) | (
        set(files_in(root / "out")) & {"port_hip_compat.h"}
    )
