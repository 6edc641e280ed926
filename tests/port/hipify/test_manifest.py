"""The proof that an output folder is what converting the sources gives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from port.hipify import convert, manifest
from tests.port.hipify.test_tree import CODE, write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def converted(tmp_path: Path) -> tuple[Path, Path]:
    source = write(tmp_path / "in", {"a.cu": CODE, "d/b.cpp": "CUdeviceptr p;\n", "t.txt": "x"})
    out = tmp_path / "out"
    assert convert(source, out, rocm="5.2", defines={"OURS": "1"}).ok
    return source, out


def problems(source: Path, out: Path) -> list[tuple[str, str]]:
    return [(found.file, found.rule) for found in manifest.check(source, out)]


def test_an_output_as_it_was_written_has_no_problem(converted: tuple[Path, Path]) -> None:
    assert problems(*converted) == []


def test_the_manifest_holds_hashes_and_what_was_chosen(converted: tuple[Path, Path]) -> None:
    _, out = converted
    record = json.loads((out / ".hipify/manifest.json").read_text())
    assert record["schema"] == 1
    assert record["options"]["rocm"] == "5.2"
    assert record["options"]["defines"] == {"OURS": "1"}
    assert set(record["files"]) == {"a.cu", "d/b.cpp", "t.txt", "port_hip_compat.h"}
    assert record["files"]["port_hip_compat.h"]["source"] is None
    assert record["files"]["a.cu"]["source"] == manifest.digest(CODE.encode())


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"in/a.cu": "int x;\n"}, [("a.cu", "source-changed")]),
        ({"in/new.h": "int x;\n"}, [("new.h", "source-added")]),
        ({"in/a.cu": None}, [("a.cu", "source-removed")]),
        ({"out/a.cu": "int x;\n"}, [("a.cu", "output-edited")]),
        ({"out/port_hip_compat.h": "\n"}, [("port_hip_compat.h", "output-edited")]),
        ({"out/a.cu": None}, [("a.cu", "output-missing")]),
        ({"out/d/by_hand.h": "int x;\n"}, [("d/by_hand.h", "output-extra")]),
        ({"out/.hipify/manifest.json": None}, [(".hipify/manifest.json", "manifest-missing")]),
        ({"out/.hipify/manifest.json": "{"}, [(".hipify/manifest.json", "manifest-missing")]),
    ],
)
def test_every_difference_is_named(
    tmp_path: Path,
    converted: tuple[Path, Path],
    change: dict[str, str | None],
    wanted: list[tuple[str, str]],
) -> None:
    for name, content in change.items():
        if content is None:
            (tmp_path / name).unlink()
        else:
            write(tmp_path, {name: content})
    assert problems(*converted) == wanted


def test_hashes_edited_along_with_the_output_do_not_help(converted: tuple[Path, Path]) -> None:
    source, out = converted
    path = out / ".hipify/manifest.json"
    record = json.loads(path.read_text())
    write(out, {"a.cu": "int x;\n"})
    record["files"]["a.cu"]["output"] = manifest.digest(b"int x;\n")
    path.write_text(json.dumps(record))
    assert problems(source, out) == [("a.cu", "stale-output")]
