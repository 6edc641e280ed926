"""The main job: one CUDA source tree, hipified, built against a real ROCm, proven and run."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(rocm, tmp_path_factory):
    """The wheel by itself in an environment that finds the dependencies of this one."""
    place = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    links = ["--find-links", str(rocm.wheel.parent), "--target", str(place)]
    subprocess.run([*pip, *links, "monarch-rocm"], check=True)
    return place


def in_environment(rocm, installed, code):
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(installed),
        "LD_LIBRARY_PATH": rocm.runtime_path,
    }
    return subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False
    )


def test_the_wheel_is_clean(rocm):
    command = [sys.executable, "-m", "port.verify", str(rocm.wheel), "--platform", "rocm", "--json"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout)
    assert report["ok"], [check for check in report["checks"] if not check["ok"]]
    assert rocm.wheel.stat().st_size <= 5_000_000


def test_it_was_hipified_from_the_tree_that_is_here(rocm):
    command = [sys.executable, "-m", "port.verify", "--sources", str(ROOT)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_module_loads_the_one_rocm_runtime_and_counts_devices(rocm, installed):
    done = in_environment(
        rocm,
        installed,
        "import monarch._gpu_rocm as m; print(m.runtime_device_count())\n"
        "print(open('/proc/self/maps').read().count('libamdhip64') > 0)",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "True"
    assert int(done.stdout.split()[0]) >= 0


@pytest.mark.report("50")
def test_each_module_has_a_stub_with_the_modules_own_names(rocm, installed):
    with zipfile.ZipFile(rocm.wheel) as archive:
        inside = archive.namelist()
        stubs = {name: archive.read(name).decode() for name in inside if name.endswith(".pyi")}
    modules = {Path(name).name.partition(".")[0] for name in inside if name.endswith(".so")}
    assert modules == {"_core", "_gpu_rocm"}
    assert {Path(name).stem for name in stubs} >= modules
    assert "monarch/py.typed" in inside
    for module in modules:
        tree = ast.parse(stubs[f"monarch/{module}.pyi"])
        named = {
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
        }
        named |= {
            node.target.id
            for node in tree.body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }
        code = f"import json, monarch.{module} as m; print(json.dumps(dir(m)))"
        done = in_environment(rocm, installed, code)
        assert done.returncode == 0, done.stderr
        public = {name for name in json.loads(done.stdout) if not name.startswith("_")}
        assert {name for name in named if not name.startswith("_")} == public


def test_no_path_of_the_build_machine_is_inside(rocm):
    unwanted = [str(rocm.tree).encode(), *(path.encode() for path in rocm.runtime_path.split(":"))]
    with zipfile.ZipFile(rocm.wheel) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            assert not [path for path in unwanted if path and path in data], name
