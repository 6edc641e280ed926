"""Each way to build and install from the sources, under each platform, on a miniature tree."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location(
    "miniature", Path(__file__).with_name("miniature.py")
)
miniature = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(miniature)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["cpu", "cuda", "rocm"])
def project(request, tmp_path_factory):
    """(platform, tree, environment of its builds, folder where the GPU runtime lies)."""
    place = tmp_path_factory.mktemp(request.param)
    tree = miniature.tree(place / "tree")
    if request.param == "cpu":
        return "cpu", tree, miniature.environment("cpu"), ""
    home = {"cuda": miniature.cuda, "rocm": miniature.rocm}[request.param](place / "toolkit")
    variable, name = {"cuda": ("CUDA_HOME", "sm_90"), "rocm": ("ROCM_PATH", "gfx942")}[
        request.param
    ]
    environ = miniature.environment(
        request.param,
        **{variable: str(home), "GPU_ARCHITECTURES": name, "GPU_CROSS_BUILD": "1"},
    )
    return request.param, tree, environ, str(home / "lib")


def works(project, python, **environ):
    """Whether the modules of the platform are there and run."""
    platform, tree, _, libraries = project
    modules = ["_core", *([] if platform == "cpu" else [f"_gpu_{platform}"])]
    value = f"[__import__('monarch.' + m, fromlist=['VALUE']).VALUE for m in {modules}]"
    environ |= {"LD_LIBRARY_PATH": libraries}
    return miniature.ask(python, value, tree.parent, **environ) == [42, 7][: len(modules)]


def test_pip_wheel(project, tmp_path):
    platform, tree, environ, _ = project
    miniature.pip(tree, environ, "wheel", "-w", str(tmp_path), "./")
    (wheel,) = tmp_path.iterdir()
    assert wheel.name.startswith(f"monarch_{platform}-")


def test_pip_install(project, tmp_path):
    _, tree, environ, _ = project
    python = miniature.environment_of_its_own(tmp_path / "env")
    miniature.pip(tree, environ, "install", "./", python=python)
    assert works(project, python)


def test_pip_install_editable(project, tmp_path):
    _, tree, environ, _ = project
    python = miniature.environment_of_its_own(tmp_path / "env")
    miniature.pip(tree, environ, "install", "-e", "./", python=python)
    assert works(project, python)


def test_build_makes_an_sdist_and_of_it_a_wheel(project, tmp_path):
    platform, tree, environ, _ = project
    done = miniature.build(tree, tmp_path / "out", environ, "--sdist", "--wheel")
    assert done.returncode == 0, done.stdout + done.stderr
    made = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert [name.split("-")[0] for name in made] == [f"monarch_{platform}"] * 2
    assert made[0].endswith(".whl")
    assert made[1].endswith(".tar.gz")
