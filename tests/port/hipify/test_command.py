"""The command line: what it prints, its exit status, and what it says of wrong usage."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from port.hipify import report, sarif
from port.hipify.cli import main
from port.hipify.findings import MEANINGS, Finding

REPOSITORY = Path(__file__).resolve().parents[3]
CODE = "#include <cuda_runtime.h>\nint drop(void* p) { return cudaFree(p); }\n"


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "port.hipify", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ, PYTHONPATH=str(REPOSITORY)) | environment,
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.cu").write_text(CODE)
    return folder


@pytest.mark.report("122")
def test_help_names_every_option_and_the_exit_statuses() -> None:
    done = run("--help")
    assert done.returncode == 0
    for parameter in main.params:
        if parameter.param_type_name == "option":
            assert any(name in done.stdout for name in parameter.opts), parameter.name
            assert parameter.help, parameter.name  # type: ignore[attr-defined]
    for status in ("0 nothing is left", "1 something is left", "2 wrong usage", "3 a limit", "130"):
        assert status in " ".join(done.stdout.split())


@pytest.mark.report("5")
def test_each_unknown_call_is_reported_with_its_place(source: Path, tmp_path: Path) -> None:
    (source / "a.cu").write_text(
        "#include <cuda_runtime.h>\nint all(int a) {\n"
        "  int b = cudaFree(0);\n  b += cudaOneX(a);\n\n\n\n\n"
        "  return cudaTwoX(b) + cudaThreeX(a);\n}\n"
    )
    done = run(source, "-o", tmp_path / "out")
    assert done.returncode == 1
    places = [
        "a.cu:4:8: error: cudaOneX",
        "a.cu:9:10: error: cudaTwoX",
        "a.cu:9:24: error: cudaThreeX",
    ]
    assert all(place in done.stdout for place in places)
    done = run(source, "-o", tmp_path / "out", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert found["ok"] is False
    assert [(each["line"], each["column"], each["name"]) for each in found["findings"]] == [
        (4, 8, "cudaOneX"),
        (9, 10, "cudaTwoX"),
        (9, 24, "cudaThreeX"),
    ]


def test_json_is_one_object_of_the_agreed_form(source: Path, tmp_path: Path) -> None:
    (source / "b.cpp").write_text("int h = cuNothingCreate(1, 2);\n")
    done = run(source, "-o", tmp_path / "out", "--json")
    found = json.loads(done.stdout)
    assert done.stderr == ""
    assert found["schema"] == 1
    assert {"schema", "ok", "files", "findings", "counts"} <= set(found)
    assert [(each["file"], each["status"]) for each in found["files"]] == [
        ("a.cu", "converted"),
        ("b.cpp", "unchanged"),
    ]
    assert set(found["findings"][0]) == {
        *("rule", "severity", "file", "line", "column", "name", "message", "remedy")
    }
    assert sum(found["counts"].values()) == 2


@pytest.mark.report("121")
def test_counts_and_status_agree_with_a_search_in_the_output(source: Path, tmp_path: Path) -> None:
    (source / "b.cpp").write_text("int plain();\n")
    for text, status in (("int a = cudaFree(0);\n", 0), ("int a = cudaFooX(0);\n", 1)):
        (source / "c.cpp").write_text(text)
        done = run(source, "-o", tmp_path / "out", "--json")
        counts = json.loads(done.stdout)["counts"]
        changed = [
            path.name
            for path in source.iterdir()
            if (tmp_path / "out" / path.name).read_bytes() != path.read_bytes()
        ]
        assert counts["converted"] == len(changed)
        left = any("cuda" in path.read_text() for path in (tmp_path / "out").glob("*.c*"))
        assert (done.returncode, left) == (status, bool(status))


@pytest.mark.report("7")
def test_warnings_do_not_change_the_status(source: Path, tmp_path: Path) -> None:
    (source / "a.cu").write_text(
        "#include <cuda_runtime.h>\n__global__ void k(int* v) {\n"
        "  int lane = threadIdx.x & 31;\n  v[lane] = __shfl_sync(0xffffffff, v[lane], 0);\n}\n"
    )
    done = run(source, "-o", tmp_path / "out", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert found["ok"] is True
    assert {each["severity"] for each in found["findings"]} == {"warning"}


def test_diff_shows_what_changes_and_check_only_looks(source: Path, tmp_path: Path) -> None:
    done = run(source, "-o", tmp_path / "out", "--check", "--diff")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert {"-#include <cuda_runtime.h>", "+#include <hip/hip_runtime.h>"} <= set(lines)
    assert not (tmp_path / "out").exists()


def test_check_names_each_output_that_differs(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(source, "-o", out)
    clean = json.loads(run(source, "-o", out, "--check", "--json").stdout)
    assert "stale-output" not in {each["rule"] for each in clean["findings"]}
    (out / "a.cu").write_text("int by_hand;\n")
    done = run(source, "-o", out, "--check", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    stale = [each["file"] for each in found["findings"] if each["rule"] == "stale-output"]
    assert stale == ["a.cu"]


def test_sarif_has_rules_levels_and_places(source: Path, tmp_path: Path) -> None:
    (source / "a b.cpp").write_text("int h = cuMulticastCreate(1, 2);\n")
    done = run(source, "-o", tmp_path / "out", "--sarif", tmp_path / "r.sarif")
    assert done.returncode == 1
    log = json.loads((tmp_path / "r.sarif").read_text())
    assert log["version"] == "2.1.0"
    (only,) = log["runs"]
    (result,) = only["results"]
    rule = only["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert result["ruleId"] == rule["id"] == "stand-in"
    assert result["level"] == "error"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20b.cpp"
    assert place["region"] == {"startLine": 1, "startColumn": 9}


def test_every_rule_id_has_a_meaning() -> None:
    ids = set()
    for path in (REPOSITORY / "port/hipify").glob("*.py"):
        for line in path.read_text().splitlines():
            word = line.strip().strip(",").strip('"')
            if "-" in word and word in MEANINGS:
                ids.add(word)
    assert ids >= set(MEANINGS) - {"unreadable"}
    found = Finding("a", 1, 1, "unknown-name", "error", "n", "m", "r")
    assert sarif.document([found])["runs"][0]["results"]


def test_names_cannot_forge_lines_of_the_report() -> None:
    assert report.printable("a\nb\x1b[0m\udc80é") == "a\\nb\\x1b[0m\\udc80é"


@pytest.mark.report("14")
class TestMap:
    def test_an_override_wins_and_new_names_are_taken(self, source: Path, tmp_path: Path) -> None:
        chosen = tmp_path / "my.json"
        chosen.write_text(
            '{"cudaFree": "my_free", "OurGpu": "OurHip", "cuda_runtime.h": "my/gpu.h"}'
        )
        (source / "a.cu").write_text(CODE + "OurGpu g;\n")
        done = run(source, "-o", tmp_path / "out", "--map", chosen)
        assert done.returncode == 0, done.stdout
        made = (tmp_path / "out/a.cu").read_text()
        assert "return my_free(p)" in made
        assert "OurHip g;" in made
        assert "#include <my/gpu.h>" in made

    @pytest.mark.report("13")
    def test_entries_are_taken_literally(self, source: Path, tmp_path: Path) -> None:
        chosen = tmp_path / "my.json"
        chosen.write_text('{"proj/gpu/common.h": "proj/hip/common.h", "A+B": "C", "a.*": "z"}')
        (source / "a.cu").write_text('#include "proj/gpu/common.h"\nint x = A+B; int abc = aab;\n')
        done = run(source, "-o", tmp_path / "out", "--map", chosen)
        assert done.returncode == 0, done.stdout + done.stderr
        made = (tmp_path / "out/a.cu").read_text()
        assert made.endswith('#include "proj/hip/common.h"\nint x = A+B; int abc = aab;\n')

    @pytest.mark.parametrize(
        ("name", "text", "says"),
        [
            ("m.json", '{"a": "b",\n "c" "d"}', "m.json:2:6: broken JSON"),
            ("m.json", "[1]", "m.json:1: wanted one object"),
            ("m.json", '{"a": "b",\n "cudaFree": 3}', "m.json:2: key 'cudaFree'"),
            ("m.json", '{"a": "b",\n "a": "c"}', "m.json: key 'a' is given twice"),
            ("m.toml", "a = 'b'\nc = [", "m.toml: broken TOML"),
            ("m.toml", "[names]\ncudaFree = 1\n", "m.toml:2: key 'cudaFree'"),
            ("m.json", "[" * 100_000, "m.json"),
        ],
    )
    def test_a_broken_map_is_named_with_line_and_key(
        self, source: Path, tmp_path: Path, name: str, text: str, says: str
    ) -> None:
        (tmp_path / name).write_text(text)
        done = run(source, "-o", tmp_path / "out", "--map", tmp_path / name)
        assert done.returncode == 2
        assert says in done.stderr
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "out").exists()

    def test_a_toml_map_may_have_tables(self, source: Path, tmp_path: Path) -> None:
        (tmp_path / "m.toml").write_text('[names]\ncudaFree = "our_free"\n')
        assert run(source, "-o", tmp_path / "out", "--map", tmp_path / "m.toml").returncode == 0
        assert "our_free(p)" in (tmp_path / "out/a.cu").read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere", "-o", "out"], "nowhere does not exist"),
        (["in", "-o", "in/a.cu"], "in/a.cu"),
        (["in", "-o", "out", "--rocm", "four"], "'four' is no ROCm version"),
        (["in", "-o", "out", "--rocm", "4.5"], "below 5.2"),
        (["in", "-o", "out", "-I", "gone"], "-I gone: there is no such folder"),
        (["in", "-o", "out", "--map", "gone.json"], "gone.json"),
        (["in"], "Missing option"),
        (["in", "-o", "out", "--sarif", "gone/r.sarif"], "gone/r.sarif"),
    ],
)
def test_wrong_usage_says_what_and_exits_with_2(
    source: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(source.parent)
    done = run(*arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_header_is_named_with_the_folders_tried(source: Path, tmp_path: Path) -> None:
    (source / "a.cu").write_text('#include "cuda_helpers_of_ours.h"\n')
    folder = tmp_path / "include"
    folder.mkdir()
    done = run(source, "-o", tmp_path / "out", "-I", folder)
    assert done.returncode == 1
    assert "cuda_helpers_of_ours.h" in done.stdout
    assert f"-I {folder}" in done.stdout
    (folder / "cuda_helpers_of_ours.h").write_text("int cudaOursX(int);\n")
    (source / "b.cu").write_text('#include "cuda_helpers_of_ours.h"\nint a = cudaOursX(1);\n')
    done = run(source, "-o", tmp_path / "out", "-I", folder)
    assert done.returncode == 0, done.stdout


def test_a_header_named_by_a_macro_of_the_build_is_told(source: Path, tmp_path: Path) -> None:
    (source / "a.cu").write_text("#include GPU_HEADER\n")
    done = run(source, "-o", tmp_path / "out", "-D", "GPU_HEADER=<cuda.h>")
    assert done.returncode == 0
    assert "-DGPU_HEADER=<hip/hip_runtime.h>" in done.stdout


@pytest.mark.report("10")
def test_no_torch_is_imported_and_a_broken_one_does_no_harm(source: Path, tmp_path: Path) -> None:
    fake = tmp_path / "site" / "torch"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text("raise RuntimeError('imported')\n")
    plain = run(source, "-o", tmp_path / "one")
    beside = run(source, "-o", tmp_path / "two", PYTHONPATH=f"{REPOSITORY}:{fake.parent}")
    assert plain.returncode == beside.returncode == 0
    assert plain.stdout == beside.stdout
    assert (tmp_path / "one/a.cu").read_bytes() == (tmp_path / "two/a.cu").read_bytes()


def test_a_release_between_the_tables_is_served_by_the_one_before(
    source: Path, tmp_path: Path
) -> None:
    done = run(source, "-o", tmp_path / "out", "--rocm", "6.9", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["tables"] == "6.4"
    assert CliRunner().invoke(main, ["--help"]).exit_code == 0
