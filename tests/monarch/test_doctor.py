"""`monarch doctor`: what it says of environments put together by hand."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from monarch import _preload
from monarch.doctor import Diagnosis, Problem, diagnose
from port.errors import ExitCode
from tests.monarch import hand_wheels, hip_copies

if TYPE_CHECKING:
    import subprocess

# The commands' own requirements, which hand-made environments take from here.
LIBRARIES = ":".join([str(hand_wheels.REPOSITORY), *(p for p in sys.path if "site-packages" in p)])


@pytest.fixture
def environment(tmp_path):
    (tmp_path / "wheels").mkdir()
    return hand_wheels.make_environment(tmp_path / "environment", tmp_path / "wheels")


def install(environment, platform: str, **facts: object) -> None:
    hand_wheels.monarch_wheel(environment.wheels, platform, facts)
    environment.pip("install", f"monarch-{platform}")


def doctor(environment, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    environ = {"PYTHONPATH": LIBRARIES, **environ}
    return environment.run("-m", "monarch", "doctor", *arguments, **environ)


@pytest.mark.slow
def test_a_wheel_without_its_native_module_is_a_fault_of_the_installation(environment):
    install(environment, "cpu")
    done = doctor(environment, "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == ExitCode.FINDINGS, done.stderr
    assert (answer["schema"], answer["ok"], answer["platform"]) == (1, False, "cpu")
    assert [found["name"] for found in answer["distributions"]] == ["monarch-cpu"]
    assert str(environment.root) in answer["package"][0]
    assert answer["checks"], "those of port.verify"
    (problem,) = answer["problems"]
    assert problem["what"] == "monarch-cpu lacks its native module monarch._core"
    assert "--force-reinstall" in problem["remedy"]


@pytest.mark.slow
def test_a_missing_hip_runtime_says_where_it_was_searched(environment):
    install(environment, "rocm", RUNTIME_SONAME="libamdhip64.so.77", RUNTIME_VERSION="77.1")
    answer = json.loads(doctor(environment, "--json").stdout)
    (missing,) = [fault for fault in answer["problems"] if fault["kind"] == "environment"]
    assert "libamdhip64.so.77 was not found" in missing["what"]
    assert "built for ROCm 77.1" in missing["what"]


@pytest.mark.slow
@pytest.mark.report("56")
def test_a_runtime_of_another_major_is_named_with_both_releases(environment, tmp_path):
    install(environment, "rocm", RUNTIME_SONAME="libamdhip64.so.6", RUNTIME_VERSION="6.4")
    hip_copies.torch(tmp_path / "site", 7, "7.2.26015")
    done = doctor(environment, PYTHONPATH=f"{LIBRARIES}:{tmp_path / 'site'}")
    assert "built for ROCm 6.4 (libamdhip64.so.6)" in done.stdout
    assert "ROCm 7.2, libamdhip64.so.7, from torch" in done.stdout


@pytest.mark.slow
def test_a_module_that_crashes_does_not_take_the_doctor_with_it(environment):
    install(environment, "cuda")
    package = next(environment.root.glob("lib/*/site-packages/monarch"))
    crash = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    (package / "_gpu_cuda.py").write_text(crash, encoding="utf-8")
    done = doctor(environment)
    assert "loading the GPU module ended with status -9" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.slow
def test_the_text_names_every_part_and_ends_in_a_verdict(environment):
    install(environment, "cpu")
    text = doctor(environment).stdout
    for part in ("python", "distributions", "platform", "module", "driver", "toolkits", "files"):
        assert f"\n{part}" in f"\n{text}"
    assert text.rstrip().splitlines()[-1].startswith("verdict: ")


@pytest.mark.slow
@pytest.mark.promise("B12")
def test_a_collision_reaches_the_commands_user_too(environment):
    install(environment, "cuda")
    install(environment, "rocm")
    done = doctor(environment)
    assert done.returncode == 1
    assert "monarch-cuda and monarch-rocm are both installed" in done.stderr


def test_a_source_tree_says_that_it_was_not_built():
    found = diagnose()
    assert found.platform is None
    assert found.status == ExitCode.FINDINGS
    assert "was not built" in found.problems[0].what


@pytest.mark.parametrize(
    ("kinds", "status"),
    [
        ([], ExitCode.CLEAN),
        (["environment"], ExitCode.ENVIRONMENT),
        (["environment", "installation"], ExitCode.FINDINGS),
    ],
)
def test_the_status_is_that_of_the_worst_problem(kinds, status):
    found = diagnose()
    values = {name: getattr(found, name) for name in Diagnosis.__slots__}
    problems = tuple(Problem(kind, "what", "remedy") for kind in kinds)
    assert Diagnosis(**{**values, "problems": problems}).status == status


def test_no_hip_runtime_is_mapped_by_looking():
    diagnose()
    assert _preload.mapped() == []
