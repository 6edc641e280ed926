"""The command line: shapes of its output, exit statuses, kinds of targets."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.port.verify import elf_writer as w
from tests.port.verify.commands import run

FIELDS = {"code", "name", "ok", "severity", "file", "detail", "remedy"}


def clean(folder):
    return w.wheel(folder, {"demo/_C.so": w.cuda_module()}, "demo-cuda")


def test_json_of_one_target_is_the_documented_object(tmp_path):
    path = clean(tmp_path)
    done = run(str(path), "--json")
    assert done.status == 0
    report = json.loads(done.out)
    assert list(report) == ["schema", "target", "platform", "ok", "checks"]
    assert (report["schema"], report["target"], report["platform"]) == (1, str(path), "cuda")
    assert report["ok"] is True
    assert all(set(check) == FIELDS for check in report["checks"])


def test_json_of_several_targets_holds_one_such_object_each(tmp_path):
    path = clean(tmp_path)
    other = w.wheel(tmp_path, {"demo/_C.so": w.cuda_module(stack=True)}, "other-cuda")
    done = run(str(path), str(other), "--json")
    assert done.status == 1
    document = json.loads(done.out)
    assert list(document) == ["schema", "ok", "targets"]
    assert document["ok"] is False
    assert [report["ok"] for report in document["targets"]] == [True, False]


def test_unreadable_target_among_others_is_told_and_decides_the_status(tmp_path):
    path = clean(tmp_path)
    done = run(str(path), "nowhere.whl", "--json")
    assert done.status == 2
    assert done.err.startswith("error: nowhere.whl: no such file")
    assert len(json.loads(done.out)["targets"]) == 1


def test_warning_leaves_the_status_clean(tmp_path):
    path = w.wheel(
        tmp_path,
        {"demo/_C.so": w.cuda_module()},
        "demo-cuda",
        tag="cp311-cp311-linux_x86_64",
    )
    done = run(str(path))
    assert done.status == 0
    assert "warning V11" in done.out


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.txt", b"just text\n"),
        ("empty", b""),
        ("a.tar.gz", b"\x1f\x8b\x08\x00"),
        ("a.so", b"\x7fELF"),
        ("a.so", b"\x7fELF\x02\x01\x01" + bytes(100)),
        ("a.whl", b""),
        ("a.whl", b"not a zip"),
    ],
)
def test_what_is_no_target_is_one_line_and_exit_2(name, data, tmp_path):
    path = tmp_path / name
    path.write_bytes(data)
    done = run(str(path), "--json")
    assert done.status == 2
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert str(path) in done.err


@pytest.mark.parametrize("name", ["zzz", "90", "gfx", "sm_90,sm_x"])
def test_architecture_that_no_platform_has_is_exit_2(name, tmp_path):
    done = run(str(clean(tmp_path)), "--arch", name)
    assert done.status == 2
    assert "is no architecture; wanted names such as sm_90, gfx942" in done.err


def test_archive_that_is_no_wheel_is_exit_2(tmp_path):
    path = w.write_zip(tmp_path / "a.zip", {"a.txt": b"x"})
    assert run(str(path)).status == 2


@pytest.mark.parametrize(
    "arguments", [[], ["--platform", "xpu", "x.whl"], ["--before", "x", "a", "b"]]
)
def test_wrong_usage_is_exit_2(arguments):
    assert run(*arguments).status == 2


def test_policy_for_another_platform_is_refused(tmp_path):
    policy = tmp_path / "p.toml"
    policy.write_text('schema = 1\nplatform = "cuda"\n', encoding="utf-8")
    done = run(str(clean(tmp_path)), "--policy", str(policy), "--platform", "rocm")
    assert done.status == 2
    assert "p.toml" in done.err


def test_broken_policy_names_file_line_and_key(tmp_path):
    policy = tmp_path / "p.toml"
    policy.write_text('schema = 1\nplatform = "cuda"\n[size]\nwheel = "big"\n', encoding="utf-8")
    done = run(str(clean(tmp_path)), "--policy", str(policy))
    assert done.status == 2
    assert f"{policy}:4: size.wheel" in done.err


def test_shared_object_is_judged_alone(tmp_path):
    path = tmp_path / "_C.so"
    path.write_bytes(w.hip_module())
    done = run(str(path), "--json")
    assert done.status == 0
    assert json.loads(done.out)["platform"] == "rocm"
    assert run(str(path), "--platform", "cuda").status == 1


def test_folder_is_judged_as_a_whole(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/_C.so").write_bytes(w.cuda_module())
    (tmp_path / "pkg/link.so").symlink_to("/etc/passwd")
    done = run(str(tmp_path), "--json")
    report = json.loads(done.out)
    assert done.status == 0
    assert report["platform"] == "cuda"
    assert not any(check["file"].endswith("link.so") for check in report["checks"])


def test_unpacked_wheel_is_held_to_its_record(tmp_path):
    for name, data in w.wheel_files({"demo/_C.so": w.cuda_module()}, "demo-cuda").items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    assert run(str(tmp_path)).status == 0
    (tmp_path / "demo/_C.so").write_bytes(w.cuda_module(soname="x.so"))
    done = run(str(tmp_path))
    assert done.status == 1
    assert "V16" in done.out


@pytest.mark.parametrize(
    ("files", "named", "platform", "how"),
    [
        ({"demo/_C.so": w.cuda_module()}, ("demo", "1.0"), "cuda", "demo/_C.so links"),
        ({"demo/_C.so": w.hip_module()}, ("demo", "1.0"), "rocm", "demo/_C.so links"),
        ({"demo/_C.so": w.cpu_module()}, ("demo", "1.0"), "cpu", "no file links"),
        ({"demo/_C.so": w.cpu_module()}, ("demo-cuda12x", "1.0"), "cuda", "name demo-cuda12x"),
        ({"demo/_C.so": w.cpu_module()}, ("demo", "1.0+rocm6.4"), "rocm", "label rocm6.4"),
        ({"demo/_C.so": w.cpu_module()}, ("demo", "1.0+cpu"), "cpu", "label cpu"),
        (
            {"demo/_C.so": w.cpu_module(), "demo/_build_info.py": b'PLATFORM = "rocm"\n'},
            ("demo", "1.0"),
            "rocm",
            "PLATFORM in demo/_build_info.py",
        ),
    ],
)
def test_platform_is_inferred_and_what_decided_is_said(files, named, platform, how, tmp_path):
    report = json.loads(run(str(w.wheel(tmp_path, files, *named)), "--json").out)
    assert report["platform"] == platform
    assert any(how in c["detail"] for c in report["checks"] if c["code"] == "V09")


def test_target_of_several_platforms_has_none(tmp_path):
    files = {"demo/_C.so": w.cuda_module(), "demo/_D.so": w.hip_module()}
    done = run(str(w.wheel(tmp_path, files)), "--json")
    report = json.loads(done.out)
    assert done.status == 0
    assert report["platform"] is None
    (check,) = [check for check in report["checks"] if check["code"] == "V09"]
    assert not check["ok"]
    assert check["severity"] == "warning"
    assert "demo/_C.so (cuda)" in check["detail"]


def test_target_is_never_imported_nor_run(tmp_path):
    """A module with a constructor that would end the process, and code that would tell."""
    source = tmp_path / "c.c"
    source.write_text(
        "#include <stdlib.h>\n__attribute__((constructor)) static void f(void) { abort(); }\n"
        "void *PyInit__C(void) { return 0; }\n",
        encoding="utf-8",
    )
    library = tmp_path / "_C.so"
    command = ["gcc", "-shared", "-fPIC", "-o", library, source]
    subprocess.run(command, check=True, capture_output=True)
    files = {
        "demo/_C.so": library.read_bytes(),
        "demo/__init__.py": b"raise SystemExit(77)\n",
        "demo/_build_info.py": b'import os\nPLATFORM = "cpu"\nX = os._exit(77)\n',
    }
    path = w.wheel(tmp_path, files, tag="cp311-cp311-manylinux_2_34_x86_64")
    done = subprocess.run(
        [sys.executable, "-m", "port.verify", str(path), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["platform"] == "cpu"


def test_installed_distribution_is_found_by_name(tmp_path, monkeypatch):
    files = w.wheel_files({"demo/_C.so": w.cuda_module()}, "demo-cuda")
    twin = w.wheel_files({"demo/_C.so": w.cuda_module()}, "demo-twin")
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    monkeypatch.syspath_prepend(str(tmp_path))
    done = run("demo-cuda", "--json")
    assert done.status == 0
    assert json.loads(done.out)["platform"] == "cuda"
    for name, data in twin.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    done = run("demo-cuda", "--installed")
    assert done.status == 1
    assert "demo-twin" in done.out
    assert "pip uninstall" in done.out


def test_names_in_a_target_cannot_write_to_the_terminal(tmp_path):
    path = w.wheel(tmp_path, {"demo/\x1b[2J\nok.so": b"not ELF"}, tag="py3-none-any")
    done = run(str(path))
    assert done.status == 1
    assert "\x1b" not in done.out
    assert "\\x1b[2J\\nok.so" in done.out
    done = run(str(tmp_path / "no\nsuch.whl"))
    assert done.status == 2
    assert done.err.count("\n") == 1


def test_pipe_is_no_target(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert run(str(tmp_path / "pipe")).status == 2
    assert run("").status == 2


def test_unknown_name_is_exit_2():
    done = run("no-such-distribution-at-all")
    assert done.status == 2
    assert "no installed distribution" in done.err
