"""Build, repair and prove one wheel; only a wheel that passed reaches the output folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from port import policy
from port.build import repair, toolchains, zig
from port.build.cache import locked
from port.errors import EnvironmentMissingError, PortError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from port.build.request import Request


class BuildError(PortError):
    """A step of the build that failed; the step's own words are above it."""


def make(tree: Path, request: Request, output: Path, say: Callable[[str], None]) -> Path:
    """Build the wheel of `request` from `tree`, repair it, verify it, and move it into `output`.

    Builds of one tree run one after the other. A build that is killed leaves a hidden folder in
    `output` at most, which the next one removes; no name that an installer looks at appears early.

    Raises:
        BuildError: the compiler or the verifier refused; their output was shown.
        PortError: as the toolchains and the repair raise.

    """
    if request.platform != "cpu":
        # What is missing ends here: the program between this and the backend loses its status.
        toolchains.find(request, os.environ, say=say)
    output.mkdir(parents=True, exist_ok=True)
    with locked(tree / "build" / ".lock"), _staging(output) as stage:
        host = {} if request.host == "system" else zig.environment(tree / "build" / "zig")
        environ = {**os.environ, **request.environment(), **host}
        environ.setdefault("SOURCE_DATE_EPOCH", repair.EPOCH)
        say(f"building the {request.platform} wheel in {tree / 'build'}")
        built = _build(tree, stage / "built", environ)
        say(f"repairing {built.name}")
        rules = policy.load(request.platform)
        repaired = repair.repair(built, stage / "repaired", rules, tag=request.tag)
        say(f"verifying {repaired.name}")
        judge = [sys.executable, "-m", "port.verify", str(repaired), "--before", str(built)]
        _run(
            [*judge, "--platform", request.platform],
            tree,
            environ,
            "the wheel is not what it should be (port.verify, above)",
        )
        final = output / repaired.name
        repaired.replace(final)
    say(f"{final} ({final.stat().st_size} bytes)")
    return final


@contextlib.contextmanager
def _staging(output: Path) -> Iterator[Path]:
    with locked(output / ".lock"):
        for stale in output.glob(".staging-*"):
            shutil.rmtree(stale, ignore_errors=True)
        stage = Path(tempfile.mkdtemp(prefix=".staging-", dir=output))
        try:
            yield stage
        finally:
            shutil.rmtree(stage, ignore_errors=True)


def _build(tree: Path, folder: Path, environ: dict[str, str]) -> Path:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    _run(
        [*command, "--outdir", str(folder), str(tree)],
        tree,
        environ,
        "the build failed (its output is above)",
    )
    made = sorted(folder.glob("*.whl"))
    if len(made) != 1:
        raise BuildError(f"the build left {len(made)} wheels in {folder}, wanted one")
    return made[0]


def _run(command: list[str], folder: Path, environ: dict[str, str], failure: str) -> None:
    """Run a step; its output goes to the terminal.

    Raises:
        EnvironmentMissingError: the step says that something is missing (status 5).
        BuildError: any other failure.

    """
    status = subprocess.run(command, cwd=folder, env=environ, check=False).returncode
    if status == EnvironmentMissingError.exit_code:
        raise EnvironmentMissingError(failure)
    if status != 0:
        raise BuildError(f"{failure}; status {status}")
