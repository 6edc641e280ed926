"""The commands of the README do what it says, word by word."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from port.build.request import Request
from port.build.toolchains import find

ROOT = Path(__file__).resolve().parents[2]
HAND_CHECK = (
    'ldd $(python3 -c "import monarch, os; print(os.path.dirname(monarch.__file__))")'
    "/_gpu_rocm*.so | grep -i hip"
)
# Every command line of the README's blocks, and the test that runs it.
RUN_BY = {
    "./ci/nox -s build-rocm": "a session, which runs in a job of its own (cpu.yml)",
    "./ci/nox -s tests": "the session that runs this",
    "python -m pip install --find-links dist monarch-rocm": "test_the_rocm_wheel_by_hand",
    "GPU_PLATFORM=rocm python -m pip install ./": "tests/port/build",
    "monarch doctor": "test_the_rocm_wheel_by_hand",
    HAND_CHECK: "test_the_rocm_wheel_by_hand",
    "python -m port.verify --installed monarch-cuda": "test_the_cuda_wheel_by_hand",
    "python -m port.hipify csrc -o build/hip --rocm 6.4": "test_a_project_of_ones_own",
    "hipcc -x hip -std=c++20 --offload-arch=gfx942 -fPIC -c build/hip/kernels.cu -o kernels.o": (
        "test_a_project_of_ones_own"
    ),
    "python -m build --wheel": "tests/examples builds with pip",
    "python -m port.build.repair dist/yours.whl --platform rocm -o wheelhouse": "tests/examples",
    "python -m port.verify wheelhouse/yours.whl --platform rocm --arch gfx942": "tests/examples",
}


def commands() -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line.partition("  #")[0].strip() for block in blocks for line in block.splitlines()]


def test_every_command_of_the_readme_is_run_somewhere():
    assert sorted(commands()) == sorted(RUN_BY)


def shell(command: str, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def installed(tmp_path, built_wheel):
    """`installed(platform)`: a folder with that wheel in dist/ and installed as the README says."""

    def install(platform: str) -> dict[str, str]:
        subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
        (tmp_path / "dist").symlink_to(built_wheel(platform).parent)
        environment = {
            **{key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
            "PATH": f"{tmp_path}/env/bin:{os.environ['PATH']}",
        }
        command = f"python -m pip install --find-links dist monarch-{platform}"
        status, said = shell(command, tmp_path, environment)
        assert status == 0, said
        loadable = find(Request(platform), os.environ).loadable
        return environment | {"LD_LIBRARY_PATH": ":".join(map(str, loadable))}

    return install


@pytest.mark.slow
def test_the_rocm_wheel_by_hand(installed, tmp_path):
    environment = installed("rocm")
    status, said = shell(HAND_CHECK, tmp_path, environment)
    assert status == 0, said
    assert re.search(r"libamdhip64\.so\.\d+ => /", said), said
    status, said = shell("monarch doctor", tmp_path, environment)
    assert status in {0, 5}, said  # the installation is sound, whatever the machine lacks
    assert "libamdhip64.so" in said


@pytest.mark.slow
def test_the_cuda_wheel_by_hand(installed, tmp_path):
    environment = installed("cuda")
    module = HAND_CHECK.replace("_gpu_rocm", "_gpu_cuda").partition(" |")[0]
    status, said = shell(module, tmp_path, environment)
    assert status == 0, said
    assert "libcud" not in said
    command = "python -m port.verify --installed monarch-cuda"
    status, said = shell(command, tmp_path, environment)
    assert status == 0, said
    assert re.search(r"ok +V01 .*no libcudart in NEEDED", said), said


@pytest.mark.slow
def test_a_project_of_ones_own(tmp_path):
    (tmp_path / "csrc").symlink_to(ROOT / "examples/foreign_extension/src")
    toolchain = find(Request("rocm"), os.environ)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PATH": f"{toolchain.compiler.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HIP_PLATFORM": "amd",
    }
    hipify, compile_kernels = (
        next(line for line in commands() if line.startswith(start))
        for start in ("python -m port.hipify", "hipcc")
    )
    status, said = shell(hipify, tmp_path, environment)
    assert status == 0, said
    offered = "gfx942" if "gfx942" in toolchain.offered else "gfx90a"
    line = compile_kernels.replace("kernels.cu", "heat.cu").replace("gfx942", offered)
    status, said = shell(line, tmp_path, environment)
    assert status == 0, said
    assert (tmp_path / "kernels.o").stat().st_size > 0
