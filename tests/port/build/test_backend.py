"""The backend, through the standard frontends, on a miniature tree."""

from __future__ import annotations

import email
import importlib.util
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from port.build import cache, info

_spec = importlib.util.spec_from_file_location(
    "miniature", Path(__file__).with_name("miniature.py")
)
miniature = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(miniature)

pytestmark = pytest.mark.slow


def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return sorted(archive.namelist())


def read(wheel, ending):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(ending)]
        return archive.read(name).decode()


def built(source, output, environ, *options):
    done = miniature.build(source, output, environ, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = [path for path in output.iterdir() if path.suffix in {".whl", ".gz"}]
    return file


def files(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "build" not in path.relative_to(folder).parts[:1]
    }


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return miniature.tree(tmp_path_factory.mktemp("mini") / "tree")


@pytest.fixture(scope="module")
def cpu_wheel(source, tmp_path_factory):
    before = files(source)
    wheel = built(source, tmp_path_factory.mktemp("out"), miniature.environment("cpu"))
    assert files(source) == before, "the working tree was written to"
    return wheel


def test_a_build_waits_for_another_one_of_the_same_tree(source, cpu_wheel, tmp_path):
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir"]
    with cache.locked(source / "build" / ".lock-backend"):
        building = subprocess.Popen(
            [*command, str(tmp_path), str(source)],
            env=miniature.environment("cpu"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        lock = f":{(source / 'build/.lock-backend').stat().st_ino} "
        while not any(
            "-> FLOCK" in line and lock in line
            for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()
        ):
            assert building.poll() is None, "it did not wait"
    assert building.wait() == 0
    assert len(list(tmp_path.glob("*.whl"))) == 1


def test_the_distribution_is_named_after_the_platform(cpu_wheel):
    assert cpu_wheel.name.startswith("monarch_cpu-0.1.0-cp3")
    metadata = email.message_from_string(read(cpu_wheel, "dist-info/METADATA"))
    assert metadata["Name"] == "monarch-cpu"


def test_newer_pythons_share_one_stable_abi_wheel(cpu_wheel):
    tag = "cp311-cp311" if sys.version_info < (3, 12) else "cp312-abi3"
    assert f"-{tag}-linux_" in cpu_wheel.name


def test_a_wheel_carries_port_with_its_data_and_the_build_info(cpu_wheel):
    inside = names(cpu_wheel)
    assert {"port/policy/rocm.toml", "monarch/py.typed", info.PATH} <= set(inside)
    assert any(name.startswith("port/hipify/data/") for name in inside)
    facts = info.parse(read(cpu_wheel, info.PATH))
    assert (facts.platform, facts.version, facts.runtime_soname) == ("cpu", "0.1.0", "")


@pytest.mark.report("51")
def test_tree_and_sdist_give_the_same_files_even_those_git_ignores(source, cpu_wheel, tmp_path):
    generated = "runtime/monarch/generated_tables.py"
    (source / ".gitignore").write_text(f"/{generated}\nport/policy/*.toml\n", encoding="utf-8")
    miniature.write(source / generated, "TABLE = ()\n")
    sdist = built(source, tmp_path / "sdist", miniature.environment("cpu"), "--sdist")
    assert sdist.name == "monarch_cpu-0.1.0.tar.gz"
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    # The platform is the sdist's own: no variable is set.
    from_sdist = built(unpacked, tmp_path / "a", miniature.environment(None))
    from_tree = built(source, tmp_path / "b", miniature.environment("cpu"))
    assert "monarch/generated_tables.py" in names(from_tree)
    assert names(from_sdist) == names(from_tree)
    assert set(names(cpu_wheel)) < set(names(from_tree))

    other = miniature.build(unpacked, tmp_path / "c", miniature.environment("rocm"))
    assert other.returncode != 0
    assert "GPU_PLATFORM=rocm, but this is the source distribution of monarch-cpu" in other.stderr


def test_an_unknown_platform_is_answered_with_the_three_there_are(source, tmp_path):
    done = miniature.build(source, tmp_path / "out", miniature.environment("metal"))
    assert done.returncode != 0
    assert "GPU_PLATFORM='metal': wanted one of cpu, cuda, rocm" in done.stderr
    assert "Traceback" not in done.stderr.partition("ERROR")[0].partition("GPU_PLATFORM")[0]
    assert not list(tmp_path.glob("out/*.whl"))


@pytest.fixture(scope="module")
def rocm_build(tmp_path_factory):
    """A ROCm wheel of the miniature, for an architecture of our choice, beside a CUDA that is in
    the way.
    """
    place = tmp_path_factory.mktemp("rocm")
    tree = miniature.tree(place / "tree")
    home = miniature.rocm(place / "rocm")
    nvcc = miniature.write(place / "bin/nvcc", "#!/bin/sh\nexit 1\n")
    nvcc.chmod(0o755)
    environ = miniature.environment(
        "rocm", ROCM_PATH=str(home), GPU_ARCHITECTURES="gfx1100", GPU_CROSS_BUILD="1"
    )
    environ["PATH"] += f":{nvcc.parent}"
    environ["SKBUILD_LOGGING_LEVEL"] = "INFO"
    wheel = built(tree, place / "out", environ)
    return tree, home, wheel


@pytest.mark.report("55")
def test_architectures_reach_hipcc_in_its_own_spelling(rocm_build):
    _, home, _ = rocm_build
    calls = (home / "calls").read_text(encoding="utf-8").split("\n")
    assert "--offload-arch=gfx1100" in calls
    assert not [word for word in calls if re.search("sm_|compute_|-gencode", word)]


def test_hipcc_is_told_its_platform(rocm_build):
    _, home, _ = rocm_build
    calls = (home / "calls").read_text(encoding="utf-8").split("\n")
    assert {word for word in calls if word.startswith("HIP_PLATFORM")} == {"HIP_PLATFORM=amd"}


def test_what_was_built_is_what_is_declared(rocm_build):
    _, _, wheel = rocm_build
    facts = info.parse(read(wheel, info.PATH))
    assert facts.architectures == ("gfx1100",)
    assert (facts.runtime_soname, facts.runtime_version) == ("libamdhip64.so.6", "6.4.7")
    metadata = email.message_from_string(read(wheel, "dist-info/METADATA"))
    assert metadata["Name"] == "monarch-rocm"
    assert "ROCm 6, libamdhip64.so.6" in metadata["Summary"]
    assert "monarch/_platform_rocm" in names(wheel) or wheel.name.startswith("monarch_rocm")


@pytest.mark.report("52")
def test_no_link_line_names_libcuda(rocm_build, source, cpu_wheel):
    for tree in (rocm_build[0], source):
        scripts = list(tree.glob("build/*/build.ninja"))
        assert scripts
        for script in scripts:
            assert not re.search(r"-lcuda\b|libcuda\.so", script.read_text(encoding="utf-8"))


def test_no_path_of_the_build_is_in_a_wheel(rocm_build):
    tree, home, wheel = rocm_build
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            assert str(tree).encode() not in data, name
            assert str(home).encode() not in data, name


@pytest.mark.report("55")
@pytest.mark.parametrize("name", ["sm_90", "gfx", "gfx90a,sm_80"])
def test_an_architecture_of_the_other_vendor_stops_the_build(rocm_build, tmp_path, name):
    tree, home, _ = rocm_build
    environ = miniature.environment("rocm", ROCM_PATH=str(home), GPU_ARCHITECTURES=name)
    done = miniature.build(tree, tmp_path / "out", environ)
    assert done.returncode != 0
    assert f"architecture {name.split(',')[-1]}" in done.stderr.replace("'", "")


@pytest.mark.report("55")
def test_cmake_itself_refuses_them_too(rocm_build, tmp_path):
    tree, home, _ = rocm_build
    definitions = {
        "GPU_PLATFORM": "rocm",
        "GPU_ARCHITECTURES": "sm_90",
        "MONARCH_GPU_COMPILER": home / "bin/hipcc",
        "MONARCH_GPU_INCLUDE": home / "include",
        "MONARCH_GPU_LIBRARY": home / "lib/libamdhip64.so",
    }
    arguments = [f"-D{name}={value}" for name, value in definitions.items()]
    command = ["cmake", "-S", str(tree), "-B", str(tmp_path / "b"), *arguments]
    environ = miniature.environment(None)
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "sm_90 is no architecture of rocm" in " ".join(done.stderr.split())


def test_a_missing_header_is_named_with_the_folder_that_was_tried(rocm_build, tmp_path):
    tree, home, _ = rocm_build
    header = home / "include/hip/hip_runtime_api.h"
    header.rename(tmp_path / "aside")
    try:
        definitions = [
            "-DGPU_PLATFORM=rocm",
            "-DGPU_ARCHITECTURES=gfx942",
            f"-DMONARCH_GPU_COMPILER={home / 'bin/hipcc'}",
            f"-DMONARCH_GPU_INCLUDE={home / 'include'}",
            f"-DMONARCH_GPU_LIBRARY={home / 'lib/libamdhip64.so'}",
        ]
        command = ["cmake", "-S", str(tree), "-B", str(tmp_path / "b"), *definitions]
        environ = miniature.environment(None)
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    finally:
        (tmp_path / "aside").rename(header)
    assert done.returncode != 0
    words = " ".join(done.stderr.split())
    assert "hip/hip_runtime_api.h is missing" in words
    assert f"-I{home / 'include'}" in words


@pytest.mark.report("48", "49")
def test_an_editable_install_works_from_any_folder_and_is_rebuilt_by_installing_again(tmp_path):
    tree = miniature.tree(tmp_path / "tree")
    environ = miniature.environment("cpu")
    python = miniature.environment_of_its_own(tmp_path / "env")
    miniature.pip(tree, environ, "install", "-e", f"{tree}/", python=python)
    value = "__import__('monarch._core', fromlist=['VALUE']).VALUE"
    for folder in (tmp_path, Path("/"), tree / "runtime"):
        assert miniature.ask(python, value, folder) == 42
    where = miniature.ask(python, "__import__('monarch').__file__", tmp_path)
    assert where == str(tree / "runtime/monarch/__init__.py")

    # Python sources are live; native code is rebuilt by installing again, never at import.
    miniature.write(tree / "runtime/monarch/__init__.py", "LIVE = True\n")
    miniature.write(tree / "runtime/core/core.cpp", "int core_value() { return 99; }\n")
    assert miniature.ask(python, "__import__('monarch').LIVE", tmp_path) is True
    assert miniature.ask(python, value, tmp_path) == 42
    miniature.pip(tree, environ, "install", "-e", f"{tree}/", python=python)
    assert miniature.ask(python, value, tmp_path) == 100
