"""Which toolchain a build takes, and what it says when there is none."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from port.build import cache, choose, request, wheel
from port.build.toolchains import apt, find, foreign, pypi, requirements, sysroot
from port.errors import EnvironmentMissingError, InputError

ROOT = Path(__file__).resolve().parents[3]
_spec = importlib.util.spec_from_file_location(
    "miniature", Path(__file__).with_name("miniature.py")
)
miniature = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(miniature)


def ask(platform, **environ):
    return request.Request.read(platform, environ)


@pytest.fixture
def rocm(tmp_path):
    return miniature.rocm(tmp_path / "rocm")


def test_an_installed_rocm_is_taken(rocm, tmp_path):
    environ = {"ROCM_PATH": str(rocm)}
    found = find(ask("rocm"), environ)
    assert (str(found.version), found.soname) == ("6.4.7", "libamdhip64.so.6")
    assert found.library == rocm / "lib/libamdhip64.so"
    assert "ROCM_PATH" in found.origin


@pytest.mark.report("54")
def test_rocm_is_found_without_any_cuda(rocm):
    assert find(ask("rocm"), {"ROCM_PATH": str(rocm), "PATH": ""}).platform == "rocm"


@pytest.mark.report("54")
def test_without_apt_the_places_searched_are_listed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentMissingError) as caught:
        find(ask("rocm"), {"ROCM_PATH": str(tmp_path / "none")}, root=tmp_path)
    message = str(caught.value)
    for place in ("ROCM_PATH", "hipcc on PATH", "/opt/rocm", "apt-get"):
        assert place in message


def test_another_release_than_the_installed_is_not_that_one(rocm, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    environ = {"ROCM_PATH": str(rocm)}
    assert find(ask("rocm", GPU_ROCM_RELEASE="6.4"), environ).soname == "libamdhip64.so.6"
    with pytest.raises(EnvironmentMissingError, match="apt-get"):
        find(ask("rocm", GPU_ROCM_RELEASE="5.7"), environ)


def test_below_the_floor_is_refused_with_the_floor(tmp_path):
    home = miniature.rocm(tmp_path / "rocm", major=4)
    with pytest.raises(InputError, match=r"ROCm 4\.4.*floor is ROCm 5\.2"):
        find(ask("rocm"), {"ROCM_PATH": str(home)})


def test_a_variable_that_leads_nowhere_is_told_beside_what_is_taken_instead(tmp_path):
    home = miniature.rocm(tmp_path / "fetched")
    made = sysroot.Sysroot(home, "some", "6.4", "hash", foreign=False, offered=())
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sysroot.Sysroot, "libraries", home / "lib")
        patch.setattr(sysroot, "native", lambda _say, _environ: made)
        find(ask("rocm"), {"ROCM_PATH": "/gone"}, root=tmp_path, say=said.append)
    place = tmp_path / "gone"
    assert said == [
        f"ROCM_PATH={place}: no such folder; taken instead: Debian some packages in {home}"
    ]


def test_a_build_without_a_toolkit_ends_with_status_5_before_it_begins(tmp_path):
    asked = ask("rocm", GPU_TOOLCHAIN="installed", GPU_ROCM_RELEASE="5.9")
    with pytest.raises(EnvironmentMissingError, match="ROCM_PATH"):
        wheel.make(ROOT, asked, tmp_path / "dist", print)
    assert not (tmp_path / "dist").exists()


def test_asked_for_an_installed_toolkit_nothing_is_fetched(tmp_path):
    with pytest.raises(EnvironmentMissingError, match="no CUDA toolkit"):
        find(ask("cuda", GPU_TOOLCHAIN="installed"), {"PATH": ""}, root=tmp_path)


def test_pypi_is_asked_for_cuda_only_where_no_toolkit_serves(tmp_path):
    packages = ask("cuda", GPU_TOOLCHAIN="packages")
    assert requirements(packages, {}) == list(pypi.REQUIREMENTS)
    assert requirements(ask("cuda"), {"PATH": ""}, root=tmp_path) == list(pypi.REQUIREMENTS)
    assert requirements(ask("cuda", GPU_TOOLCHAIN="installed"), {}) == []
    assert requirements(ask("rocm", GPU_TOOLCHAIN="packages"), {}) == []
    assert requirements(ask("cpu"), {}) == []
    assert not [line for line in pypi.REQUIREMENTS if "nccl" in line]


def test_pypi_cuda_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(pypi, "_folder", lambda: None)
    with pytest.raises(EnvironmentMissingError, match="pip install nvidia-cuda-runtime"):
        pypi.toolchain("no CUDA")


@pytest.mark.parametrize(
    ("variable", "value"),
    [("GPU_TOOLCHAIN", "conda"), ("GPU_CROSS_BUILD", "yes"), ("GPU_HOST_COMPILER", "icc")],
)
def test_a_variable_with_an_impossible_value_names_the_possible(variable, value):
    with pytest.raises(InputError, match=rf"{variable}='{value}': wanted "):
        ask("cpu", **{variable: value})


def test_a_request_survives_the_environment():
    environ = {
        "GPU_ARCHITECTURES": "gfx942",
        "GPU_TOOLCHAIN": "packages",
        "GPU_ROCM_RELEASE": "6.4",
        "GPU_CROSS_BUILD": "1",
    }
    asked = ask("rocm", **environ)
    assert ask("rocm", **asked.environment()) == asked


@pytest.mark.parametrize("platform", ["cpu", "cuda", "rocm"])
def test_zig_compiles_for_every_platform(platform):
    zig = ask(platform, GPU_HOST_COMPILER="zig")
    assert ask(platform, **zig.environment()) == zig
    assert zig.tag == "auto"
    assert replace(zig, release=True).tag.startswith("manylinux_2_28_")


def test_the_platform_of_an_sdist_is_its_name(tmp_path):
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: monarch-rocm\n")
    assert choose.request(tmp_path, {}).platform == "rocm"
    with pytest.raises(InputError, match=r"GPU_PLATFORM=cuda.*monarch-rocm"):
        choose.request(tmp_path, {"GPU_PLATFORM": "cuda"})


APT = """\
#!/bin/sh
echo "$0 $*" >> "{log}"
case "$*" in
  *" update"*) exit 0 ;;
  *" -s "*) cat "{folder}/simulated"; exit 0 ;;
  *" download "*) : > "{folder}/downloaded"; exit 0 ;;
esac
echo "E: nothing provides it" >&2
exit 100
"""


@pytest.fixture
def fake_apt(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    for name in ("apt-get", "apt-cache"):
        path = miniature.write(folder / name, APT.format(log=tmp_path / "log", folder=tmp_path))
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path


def test_apt_never_works_in_the_systems_folders(fake_apt):
    (fake_apt / "simulated").write_text(
        "Inst b (2.0-1 Debian:12/stable [amd64])\nInst a [1.0] (1:1.1~x Debian [all])\n"
        "Conf b (2.0-1 Debian:12/stable [amd64])\n"
    )
    own = apt.Apt(fake_apt / "apt", sources="deb x y z\n")
    own.prepare()
    closure = own.closure(["b"])
    assert [package.target for package in closure] == ["a=1:1.1~x", "b=2.0-1"]
    own.download(closure, fake_apt / "debs")
    for line in (fake_apt / "log").read_text().splitlines():
        for option in ("Dir::State=", "Dir::Cache=", "Dir::Etc::sourcelist="):
            assert f"{option}{fake_apt}" in line


def test_apt_failing_is_quoted(fake_apt):
    with pytest.raises(EnvironmentMissingError, match="nothing provides it"):
        apt.Apt(fake_apt / "apt").versions("x")


def test_a_compiler_that_cannot_start_says_what_it_needs(tmp_path):
    hipcc = miniature.write(tmp_path / "bin/hipcc", "#!/bin/sh\necho no namespace >&2\nexit 1\n")
    hipcc.chmod(0o755)
    with pytest.raises(EnvironmentMissingError, match=r"no namespace(.|\n)*run the build as root"):
        foreign.check(tmp_path)


def test_the_wrapper_of_an_unpacked_compiler_fixes_platform_and_folders(tmp_path):
    program = tmp_path / "root/usr/bin/hipcc"
    miniature.write(program, '#!/bin/sh\necho "$HIP_PLATFORM $HIP_PATH $DEVICE_LIB_PATH $*"\n')
    program.chmod(0o755)
    miniature.write(tmp_path / "root/usr/lib/llvm-15/bin/clang", "")
    miniature.write(tmp_path / "root/usr/lib/somewhere/bitcode/ockl.bc", "")
    sysroot._write_programs(tmp_path, sysroot.NATIVE_RUN)
    done = subprocess.run(
        [str(tmp_path / "bin/hipcc"), "-c", "a b.cu"],
        env={"PATH": os.environ["PATH"], "HIP_PLATFORM": "nvidia"},
        capture_output=True,
        text=True,
        check=True,
    )
    usr = tmp_path / "root/usr"
    assert done.stdout == f"amd {usr} {usr}/lib/somewhere/bitcode -c a b.cu\n"


@pytest.mark.promise("B09")
def test_a_cache_entry_of_a_killed_builder_is_not_taken(tmp_path):
    code = f"""
        import os, signal, sys
        sys.path.insert(0, {str(ROOT)!r})
        from pathlib import Path
        from port.build import cache

        def fill(place):
            (place / "half").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)

        cache.entry(Path({str(tmp_path / "entry")!r}), fill)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert not (tmp_path / "entry").exists()

    made = cache.entry(tmp_path / "entry", lambda place: (place / "whole").write_text("whole"))
    assert [path.name for path in made.iterdir()] == ["whole"]
    assert not list(tmp_path.glob(".new-*"))


def test_a_failed_builder_leaves_nothing_and_a_full_entry_is_not_built_again(tmp_path):
    def fail(place):
        (place / "half").write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        cache.entry(tmp_path / "entry", fail)
    assert [path.name for path in tmp_path.iterdir()] == [".lock-entry"]
    cache.entry(tmp_path / "entry", lambda _: None)
    cache.entry(tmp_path / "entry", fail)
