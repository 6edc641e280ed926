"""Session tests: everything that needs no GPU, under one pytest run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ci import built, project

if TYPE_CHECKING:
    import nox


def tests(session: nox.Session) -> None:
    """Build the wheels that the tests take apart, install and run; then run the tests."""
    groups = project.group("test", "wheel")
    session.install(*groups, *project.run_time_requirements(), *project.build_requirements())
    for platform in built.PLATFORMS:
        session.install(*_toolchain(session, platform))
    session.run("python", "-m", "ci.built")
    # A file is one worker's, so that what a module of tests builds is built once; in the order of
    # tests/conftest.py. One worker more than cores: many tests wait for what takes its time.
    count = min(8, (os.cpu_count() or 1) + 1)
    workers = ("-n", str(count), "--dist", "loadfile", "--no-loadscope-reorder")
    others = ("--ignore=tests/device", "--ignore=tests/skypilot")  # gpu-tests, skypilot
    limit = ("--timeout", "900")  # seconds a test, so that one that hangs is named
    session.run("pytest", *workers, *limit, *others, *session.posargs)


def elastic(session: nox.Session) -> None:
    """Install this tree beside torch, and run what trains with it or sends its tensors."""
    session.install(*project.group("test"), *project.run_time_requirements(), "torch==2.13.*")
    session.install("--no-deps", ".", env={"GPU_PLATFORM": "cpu"})
    options = ("-o", "pythonpath=.", "--timeout", "900")  # the package that was built; as above
    files = ("tests/examples/test_elastic_ddp.py", "tests/monarch/actor/test_tensors.py")
    session.run("pytest", *options, *files, *session.posargs)


def skypilot(session: nox.Session) -> None:
    """Install this tree beside SkyPilot, and run what asks that for hosts."""
    wanted = ("skypilot[slurm]==0.14.*", "uv")  # uv: SkyPilot's nodes need it
    session.install(*project.group("test"), *project.run_time_requirements(), *wanted)
    session.install("--no-deps", ".", env={"GPU_PLATFORM": "cpu"})
    installed = ("-o", "pythonpath=.")  # the package that was built, not the tree's sources
    session.run("pytest", *installed, "--timeout", "900", "tests/skypilot", *session.posargs)


def _toolchain(session: nox.Session, platform: str) -> list[str]:
    """What a build for `platform` takes from PyPI: CUDA's compiler, where none is installed."""
    command = ("python", "-m", "port.build", "requirements", "--platform", platform)
    return str(session.run(*command, silent=True, stderr=None)).split("\n")[:-1]
