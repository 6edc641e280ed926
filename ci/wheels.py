"""Sessions build-cpu, build-cuda, build-rocm, hipify, verify and wheel-test."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ci import project

if TYPE_CHECKING:
    from collections.abc import Sequence

    import nox

SMOKE = project.ROOT / "tests/wheels/smoke.py"
HIPIFY = ("native/cuda", "-o", "native/hip", "--rocm", "5.2")
"""Our own conversion: the floor release, so that the result compiles against every later one."""


def build(session: nox.Session, platform: str) -> None:
    """Hipify (for rocm), build, repair, verify, install in a clean environment, run."""
    session.install(*project.group("wheel"), *project.run_time_requirements())
    command = ["python", "-m", "port.build"]
    given = ["--platform", platform, *session.posargs]
    session.install(*_lines(session, *command, "requirements", *given))
    if platform == "rocm":
        session.run("python", "-m", "port.hipify", *HIPIFY)
    session.run(*command, "wheel", *given)
    folder = Path(_lines(session, *command, "output", *given)[-1])
    _try_out(session, platform, folder, _runtime_path(session, given))


def hipify(session: nox.Session) -> None:
    """Regenerate native/hip from native/cuda."""
    session.install(*project.run_time_requirements())
    session.run("python", "-m", "port.hipify", *HIPIFY, *session.posargs)


def verify(session: nox.Session) -> None:
    """Verify the wheels named after --, or all that are in dist; and that native/hip is fresh."""
    session.install(*project.run_time_requirements())
    targets = session.posargs or [str(path) for path in _wheels(project.ROOT / "dist")]
    session.run("python", "-m", "port.verify", "--sources", ".")
    for target in targets:
        session.run("python", "-m", "port.verify", target)


def wheel_test(session: nox.Session) -> None:
    """Install each distribution of dist by name into a clean environment and run it."""
    session.install(
        *project.group("wheel"), *project.group("test"), *project.run_time_requirements()
    )
    wheels = _wheels(project.ROOT / "dist")
    if not wheels:
        session.error(
            "no wheel in dist: run the sessions build-rocm, build-cuda or build-cpu first"
        )
    for folder, platform in sorted({(path.parent, _platform(path)) for path in wheels}):
        given = ["--platform", platform]
        if folder.name.startswith("rocm"):
            _try_out(session, platform, folder, "")
        else:
            _try_out(session, platform, folder, _runtime_path(session, given))
    session.run("pytest", "-q", "tests/wheels/test_collisions.py")


def _wheels(dist: Path) -> list[Path]:
    return sorted([*dist.glob("monarch_*.whl"), *dist.glob("rocm*/monarch_*.whl")])


def _platform(wheel: Path) -> str:
    return wheel.name.split("-", maxsplit=1)[0].removeprefix("monarch_")


def _lines(session: nox.Session, *command: str) -> list[str]:
    text = session.run(*command, silent=True, stderr=None)
    return str(text).split()


def _runtime_path(session: nox.Session, given: Sequence[str]) -> str:
    command = ("python", "-m", "port.build", "runtime-path", *given)
    return "".join(_lines(session, *command))


def _try_out(session: nox.Session, platform: str, folder: Path, runtime_path: str) -> None:
    """Install `monarch-PLATFORM` by name from `folder` into a new environment, and run it there.

    The environment sees no source of ours: it runs in a folder of its own. The dependencies are
    fetched first, so that the install itself takes everything from folders.
    """
    place = Path(session.create_tmp()).resolve() / f"try-{platform}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    house = project.CACHE / "wheelhouse"
    pip = ("python", "-m", "pip", "--disable-pip-version-check", "-q")
    needs = project.run_time_requirements()
    session.run(*pip, "download", "--only-binary", ":all:", "-d", str(house), *needs)
    session.run("python", "-m", "venv", str(place / "env"))
    python = str(place / "env/bin/python")
    links = ("--find-links", str(folder.resolve()), "--find-links", str(house))
    arguments = ("-m", "pip", "-q", "--disable-pip-version-check", "install", "--no-index", *links)
    session.run(python, *arguments, f"monarch-{platform}", external=True)
    environment = {"LD_LIBRARY_PATH": runtime_path} if runtime_path else {}
    environment["PYTHONPATH"] = ""
    with session.chdir(place):
        session.run(python, "-I", str(SMOKE), platform, env=environment, external=True)
