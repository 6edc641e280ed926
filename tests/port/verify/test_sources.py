"""native/hip against native/cuda: fresh, stale, edited, missing."""

from __future__ import annotations

import json

import pytest

from port.hipify import convert
from tests.port.verify.commands import run

SOURCE = "#include <cuda_runtime.h>\nint f(void **p) { return cudaMalloc(p, 4) == cudaSuccess; }\n"


@pytest.fixture
def tree(tmp_path):
    source = tmp_path / "native/cuda"
    source.mkdir(parents=True)
    (source / "a.cu").write_text(SOURCE, encoding="utf-8")
    (source / "b.h").write_text("int b;\n", encoding="utf-8")
    assert convert(source, tmp_path / "native/hip", rocm="5.2").ok
    return tmp_path


def failed_checks(tree):
    done = run("--sources", str(tree), "--json")
    report = json.loads(done.out)
    assert done.status == (0 if report["ok"] else 1)
    assert {check["code"] for check in report["checks"]} == {"V23"}
    return {c["file"]: c["detail"] for c in report["checks"] if not c["ok"]}


def test_fresh_conversion_is_clean(tree):
    assert failed_checks(tree) == {}


def test_changed_source_makes_its_output_stale(tree):
    path = tree / "native/cuda/a.cu"
    path.write_text(SOURCE + "int g(void *p) { return cudaFree(p); }\n", encoding="utf-8")
    found = failed_checks(tree)
    assert set(found) == {"native/hip/a.cu"}
    assert "changed since" in found["native/hip/a.cu"]


def test_edited_output_is_told_from_a_changed_source(tree):
    path = tree / "native/hip/a.cu"
    path.write_bytes(path.read_bytes() + b"// by hand\n")
    assert any("not as it was written" in detail for detail in failed_checks(tree).values())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tree: (tree / "native/hip/b.h").unlink(), "gone"),
        (lambda tree: (tree / "native/hip/c.h").write_bytes(b"x"), "not made from a source"),
        (lambda tree: (tree / "native/cuda/b.h").unlink(), "no source"),
        (lambda tree: (tree / "native/hip/.hipify/manifest.json").unlink(), "no manifest"),
    ],
)
def test_other_differences_are_told(change, words, tree):
    change(tree)
    assert any(words in detail for detail in failed_checks(tree).values())


def test_nothing_is_written(tree):
    before = {path: path.stat().st_mtime_ns for path in tree.rglob("*")}
    (tree / "native/cuda/a.cu").write_text(SOURCE * 2, encoding="utf-8")
    failed_checks(tree)
    after = {path: path.stat().st_mtime_ns for path in tree.rglob("*")}
    del before[tree / "native/cuda/a.cu"], after[tree / "native/cuda/a.cu"]
    assert before == after


def test_folder_without_sources_is_exit_2(tmp_path):
    done = run("--sources", str(tmp_path))
    assert done.status == 2
    assert done.err.count("\n") == 1
