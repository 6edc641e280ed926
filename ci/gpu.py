"""Session gpu-tests: the device tests, with the built wheel, on whatever GPUs this machine has."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ci import project

if TYPE_CHECKING:
    import nox


@dataclass(frozen=True, slots=True)
class Vendor:
    """Whose GPUs, the device nodes that every one of them needs, and the platform to test."""

    name: str
    platform: str
    nodes: tuple[str, ...]

    def present(self, root: Path) -> bool:
        return all(any(root.glob(node)) for node in self.nodes)


VENDORS = (
    Vendor("nvidia", "cuda", ("dev/nvidia[0-9]*", "dev/nvidiactl")),
    Vendor("amd", "rocm", ("dev/kfd", "dev/dri/renderD*")),
)


def gpu_tests(session: nox.Session) -> None:
    """Run tests/device once for each vendor whose GPUs are here.

    Without any it is a skip that says what was looked for; with `-- --require nvidia` (or amd)
    their absence is a failure. Other arguments go to pytest.
    """
    parser = argparse.ArgumentParser(prog="nox -s gpu-tests --", allow_abbrev=False)
    parser.add_argument("--require", choices=[vendor.name for vendor in VENDORS])
    options, rest = parser.parse_known_args(session.posargs)
    found = [vendor for vendor in VENDORS if vendor.present(Path("/"))]
    if options.require and options.require not in {vendor.name for vendor in found}:
        session.error(f"no {options.require} GPU on this machine: {_looked_for()}")
    if not found:
        session.skip(f"no GPU on this machine: {_looked_for()}")
    session.install(*project.group("test"), *project.run_time_requirements())
    for vendor in found:
        wheel = newest_wheel(project.ROOT / "dist", vendor.platform)
        if wheel is None:
            session.error(
                f"no monarch-{vendor.platform} wheel in dist for the {vendor.name} GPU; "
                f"first run: ./ci/nox -s build-{vendor.platform}"
            )
        for platform in ("cuda", "rocm", "cpu"):
            session.run("python", "-m", "pip", "uninstall", "-qy", f"monarch-{platform}")
        session.install("--no-deps", "--force-reinstall", str(wheel))
        # The package under test is the installed one: of the tree only `tests` and `port` count.
        session.run("pytest", "-o", "pythonpath=.", "tests/device", *rest)


def newest_wheel(dist: Path, platform: str) -> Path | None:
    wheels = [*dist.glob(f"monarch_{platform}-*.whl"), *dist.glob(f"*/monarch_{platform}-*.whl")]
    return max(wheels, key=lambda path: path.stat().st_mtime, default=None)


def _looked_for() -> str:
    return "looked for " + "; ".join(
        f"{vendor.name}: {' and '.join('/' + node for node in vendor.nodes)}" for vendor in VENDORS
    )
