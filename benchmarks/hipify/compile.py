"""Does a unit compile? clang's syntax pass on the host side, with answers kept by content."""

from __future__ import annotations

import hashlib
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from corpus import KERNEL_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from corpus import Project
    from toolchain import Toolchain

_LIMIT_S = 600


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a unit compiled and, if not, the first error."""

    ok: bool
    error: str


class Judge:
    """Runs the compiler on units of one tree and remembers what it said."""

    def __init__(self, toolchain: Toolchain | None, cache: Path, *, jobs: int = 2) -> None:
        self.toolchain = toolchain
        self._folder = cache / "verdicts"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._jobs = jobs

    def check(
        self,
        project: Project,
        tree: Path,
        top: Path,
        units: Sequence[str],
        *,
        hip: str | None,
        kernels: frozenset[str] | None = None,
    ) -> dict[str, Outcome]:
        """Compile `units` (relative to `top`) as CUDA, or as HIP of release `hip`.

        `kernels` are those that hold device code, where their names do not tell.
        """
        place = _Place(project, tree, top, hip, kernels, _tree_digest(top))
        with ThreadPoolExecutor(self._jobs) as pool:
            jobs = {unit: pool.submit(self._one, place, unit) for unit in units}
            return {unit: job.result() for unit, job in jobs.items()}

    def _one(self, place: _Place, unit: str) -> Outcome:
        if self.toolchain is None:
            return Outcome(ok=False, error="not compiled")
        command = self.toolchain.command(
            place.project, place.tree, place.top, unit, hip=place.hip, kernel=place.is_kernel(unit)
        )
        shown = [
            part.replace(str(place.top), "@").replace(str(place.tree), "#") for part in command
        ]
        key = hashlib.sha256(json.dumps([shown, place.digest]).encode()).hexdigest()
        path = self._folder / f"{key}.json"
        if path.exists():
            return Outcome(**json.loads(path.read_text()))
        try:
            done = subprocess.run(
                command, capture_output=True, check=False, timeout=_LIMIT_S, cwd=place.top
            )
        except subprocess.TimeoutExpired:
            return Outcome(ok=False, error=f"no answer within {_LIMIT_S} s")
        text = done.stderr.decode("utf-8", "replace")
        outcome = Outcome(ok=done.returncode == 0, error=_first_error(text.splitlines()))
        path.write_text(json.dumps({"ok": outcome.ok, "error": outcome.error}))
        return outcome


@dataclass(frozen=True, slots=True)
class _Place:
    project: Project
    tree: Path
    top: Path
    hip: str | None
    kernels: frozenset[str] | None
    digest: str

    def is_kernel(self, unit: str) -> bool:
        if self.kernels is None:
            return unit.endswith(KERNEL_SUFFIXES)
        return unit in self.kernels


def _first_error(lines: Iterable[str]) -> str:
    return next((line for line in lines if "error:" in line), "")


def _tree_digest(top: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(top.rglob("*")):
        if path.is_file() and ".hipify" not in path.parts:
            digest.update(str(path.relative_to(top)).encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
