"""Which platform a build is for, and why: the one detector of builds, tests and the doctor.

`GPU_PLATFORM` is the only switch. Unset, an installed ROCm means rocm, an installed CUDA means
cuda, both are a question back, and none means cpu. Run as `python -m port.platform`.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from port import architectures
from port.cli import run
from port.errors import EnvironmentMissingError, ExitCode, InputError, PortError
from port.toolkits import FLOORS, Machine, Searched, Toolkit, label, release, rocm_label, search

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Detection", "Platform", "Searched", "Survey", "Toolkit", "detect", "rocm_label"]

Platform = Literal["cpu", "cuda", "rocm"]

PLATFORMS: tuple[Platform, ...] = ("cpu", "cuda", "rocm")
VARIABLE = "GPU_PLATFORM"
ARCHITECTURES = "GPU_ARCHITECTURES"


@dataclass(frozen=True, slots=True)
class Survey:
    """What was asked for and what the machine has.

    `asked` is the text of GPU_ARCHITECTURES. `can_fetch` is true on a Debian family, where a build
    can fetch the ROCm packages it lacks.
    """

    requested: str | None
    asked: str | None
    toolkits: tuple[Toolkit, ...]
    searched: tuple[Searched, ...]
    can_fetch: bool

    def toolkit(self, kind: str) -> Toolkit | None:
        """The preferred toolkit of that kind."""
        return next((toolkit for toolkit in self.toolkits if toolkit.kind == kind), None)

    def table(self) -> str:
        """Every place that was looked at and what was there, for people."""
        rows = [("", VARIABLE, self.requested if self.requested is not None else "not set", "")]
        rows += [("", ARCHITECTURES, self.asked or "not set", "")]
        rows += [(s.kind, s.by, s.result, str(s.path or "")) for s in self.searched]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [
            "  ".join(
                [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]
            )
            for row in rows
        ]
        for found in self.toolkits:
            has = ", ".join(found.architectures) or "not known"
            lines += [
                "",
                f"{label(found.kind)} {found.version or '?'} at {found.root}, by {found.found_by}",
                f"  compiler       {found.compiler or 'none'}",
                f"  headers        {found.include}",
                f"  library        {found.library or 'none'}",
                f"  architectures  {has}",
            ]
        return "\n".join(line.rstrip() for line in lines)

    def decide(self) -> Detection:
        """The platform to build for.

        Raises:
            InputError: an unknown value of GPU_PLATFORM; CUDA and ROCm both found with the
                variable unset; the toolkit found is older than the floor.
            EnvironmentMissingError: rocm asked for, none found, and none can be fetched.

        """
        decision, reason = self._choice()
        found = self.toolkit(decision)
        if found:
            _check_floor(found)
        elif decision == "rocm" and not self.can_fetch:
            raise EnvironmentMissingError(self._nothing_found())
        return Detection(
            **{name: getattr(self, name) for name in Survey.__slots__},
            decision=decision,
            reason=reason,
        )

    def _choice(self) -> tuple[Platform, str]:
        if self.requested is not None:
            if self.requested not in PLATFORMS:
                raise InputError(
                    f"{VARIABLE}={self.requested!r} is unknown; "
                    f"set it to one of {', '.join(PLATFORMS)}, or unset it to detect"
                )
            return self.requested, f"{VARIABLE}={self.requested}"
        cuda, rocm = self.toolkit("cuda"), self.toolkit("rocm")
        if cuda and rocm:
            raise InputError(
                f"CUDA {cuda.version or '?'} at {cuda.root} and ROCm {rocm.version or '?'} at "
                f"{rocm.root} are both installed: set {VARIABLE} to cuda, rocm or cpu"
            )
        found = rocm or cuda
        if found:
            return found.kind, f"{label(found.kind)} is installed at {found.root}"
        return "cpu", f"{VARIABLE} is not set, and neither CUDA nor ROCm is installed"

    def _nothing_found(self) -> str:
        places = "".join(
            f"\n  {s.by}: {s.path or ''} ({s.result})" for s in self.searched if s.kind == "rocm"
        )
        return (
            f"{VARIABLE}=rocm, and no ROCm was found. Searched:{places}\n"
            f"Install ROCm {FLOORS['rocm']} or newer (Debian and its family: "
            "`apt-get install hipcc libamdhip64-dev`; others: AMD's packages) "
            "and set ROCM_PATH to it if it is not in /opt/rocm"
        )


@dataclass(frozen=True, slots=True)
class Detection(Survey):
    """A survey and the platform it leads to."""

    decision: Platform
    reason: str

    def chosen(self) -> Toolkit | None:
        """The toolkit of the platform decided on; None for cpu, and where a build fetches one."""
        return self.toolkit(self.decision)

    def to_json(self) -> dict[str, Any]:
        return {**_survey_json(self), "decision": self.decision, "reason": self.reason}


def survey(environ: Mapping[str, str] = os.environ, *, root: Path = Path("/")) -> Survey:
    """What a machine has. Absolute paths, those in variables included, are read below `root`."""
    machine = Machine(environ, root)
    toolkits, searched = search(machine)
    requested = environ.get(VARIABLE)
    can_fetch = (root / "etc/debian_version").is_file() and machine.on_path("apt-get") is not None
    asked = environ.get(ARCHITECTURES) or None
    return Survey(requested, asked, toolkits, searched, can_fetch)


def detect(environ: Mapping[str, str] = os.environ, *, root: Path = Path("/")) -> Detection:
    """The platform to build for on this machine; the errors are those of `Survey.decide`."""
    return survey(environ, root=root).decide()


def _check_floor(found: Toolkit) -> None:
    floor = FLOORS[found.kind]
    name = f"{label(found.kind)} {found.version or '?'} at {found.root}"
    if found.version is None:
        raise InputError(f"{name}: its headers name no version; {release_floor(found.kind)}")
    if found.version < floor:
        raise InputError(
            f"{name} (by {found.found_by}) is too old; {release_floor(found.kind)}: "
            "install a newer one, or point its variable to one"
        )


def release_floor(kind: str) -> str:
    """The oldest release that builds, in words."""
    floor = FLOORS[kind]
    return f"{'ROCm' if kind == 'rocm' else 'CUDA'} {floor} or newer is needed"


def _survey_json(found: Survey) -> dict[str, Any]:
    return {
        "schema": 1,
        "requested": found.requested,
        "architectures_asked": found.asked,
        "can_fetch": found.can_fetch,
        "toolkits": [
            {
                "kind": t.kind,
                "root": str(t.root),
                "version": str(t.version) if t.version else None,
                "release": release(t.version) if t.version else None,
                "found_by": t.found_by,
                "compiler": str(t.compiler) if t.compiler else None,
                "include": str(t.include),
                "library": str(t.library) if t.library else None,
                "architectures": list(t.architectures),
            }
            for t in found.toolkits
        ],
        "searched": [
            {
                "kind": s.kind,
                "by": s.by,
                "path": str(s.path) if s.path else None,
                "result": s.result,
            }
            for s in found.searched
        ],
        "devices": {kind: list(architectures.probe(kind, Path("/"))) for kind in ("cuda", "rocm")},
    }


def plan(detection: Detection) -> str:
    """What a build will use, in one sentence.

    Raises:
        InputError: GPU_ARCHITECTURES names something that this build cannot have.
        EnvironmentMissingError: the compiler has none of the default architectures.

    """
    found = detection.chosen()
    offered = found.architectures if found else ()
    chosen = architectures.choose(detection.decision, detection.asked, offered)
    built = f"architectures {', '.join(chosen)}"
    if detection.decision == "cpu":
        return "no GPU module is built"
    if found:
        return f"{label(found.kind)} {found.version} at {found.root}; {built}"
    if detection.decision == "cuda":
        return f"no CUDA is installed: NVIDIA's packages of the Python index are taken; {built}"
    return (
        "no ROCm is installed: Debian's packages are fetched into a private folder; "
        f"{built}, each where their compiler has it"
    )


@click.command(name="platform")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool) -> int:
    """Say which GPU platform a build is for, and what was found where."""
    found = survey()
    try:
        detection = found.decide()
        planned = plan(detection)
    except PortError as error:
        if not as_json:
            click.echo(found.table() + "\n")
            raise
        failed = {**_survey_json(found), "decision": None, "reason": None, "error": str(error)}
        click.echo(json.dumps(failed, indent=2))
        return int(error.exit_code)
    if as_json:
        click.echo(json.dumps({**detection.to_json(), "plan": planned}, indent=2))
    else:
        click.echo(f"{detection.table()}\n\n{detection.decision}: {detection.reason}\n{planned}")
    return ExitCode.CLEAN


if __name__ == "__main__":
    run(command)
