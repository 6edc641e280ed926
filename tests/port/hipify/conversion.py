"""Runs the converter as a user does and reads its report; judges the cases of this folder."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from port.hipify.cli import main
from tests.hip_headers import hip_clang, include_folder

if TYPE_CHECKING:
    from pathlib import Path

_COMMENT = re.compile(
    r'(?P<keep>(?:u8|[uUL])?R"(?P<fence>[^ ()\\\s"]{0,16})\(.*?\)(?P=fence)"'
    r'|"(?:[^"\\\n]|\\\r?\n|\\.)*"|(?<![0-9A-Fa-f])\'(?:[^\'\\\n]|\\.)*\')'
    r"|//(?:[^\\\n]|\\\r?\n|\\)*|/\*.*?(?:\*/|\Z)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Conversion:
    """One finished run: exit status, the `--json` object and what it wrote on stderr."""

    status: int
    report: dict[str, Any]
    stderr: str
    out: Path

    def at(self, place: str) -> list[dict[str, Any]]:
        """The findings at `file:line`."""
        file, _, line = place.rpartition(":")
        return [f for f in self.report["findings"] if f["file"] == file and f["line"] == int(line)]

    def text(self, file: str) -> str:
        """An output file without its comments."""
        text = (self.out / file).read_bytes().decode("latin-1")
        return _COMMENT.sub(lambda match: match.group("keep") or " ", text)


def convert(source: Path, out: Path, *arguments: str) -> Conversion:
    """`python -m port.hipify SOURCE -o OUT --json` with `arguments`, in this process."""
    command = [str(source), "-o", str(out), "--json", *arguments]
    done = CliRunner().invoke(main, command, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    status = done.return_value if isinstance(done.return_value, int) else 0
    return Conversion(status, json.loads(done.stdout), done.stderr, out)


@dataclass(frozen=True, slots=True)
class Case:
    """A folder with `src/` and `expect.json`."""

    folder: Path
    expect: dict[str, Any]

    def faults(self, run: Conversion) -> list[str]:
        """What does not hold after `run`, in words."""
        faults = []
        if run.status not in self.expect["exit"]:
            faults.append(f"exit status {run.status}, wanted one of {self.expect['exit']}")
        if "Traceback" in run.stderr:
            faults.append(f"traceback: {run.stderr}")
        for place in self.expect["quiet"]:
            faults += [f"{place} is reported: {_words(f)}" for f in run.at(place)]
        for check in self.expect["checks"]:
            if not any(_holds(condition, run) for condition in check["any"]):
                faults.append(f"{check['why']}: {check['any']}")
        source = self.folder / "src"
        for path in source.rglob("*"):
            if path.is_file() and not (run.out / path.relative_to(source)).is_file():
                faults.append(f"no output for {path.relative_to(source)}")
        return faults

    def left_to_compiler(self, run: Conversion) -> list[str]:
        """Checks that only a compiler could decide, where this machine has none for HIP."""
        return [
            check["why"]
            for check in self.expect["checks"]
            if any(judged_by_compiler(c) for c in check["any"])
            and not any(not judged_by_compiler(c) and _holds(c, run) for c in check["any"])
        ]


def cases(folder: Path) -> list[Case]:
    """Every case below `folder`, by name."""
    return [
        Case(path.parent, json.loads(path.read_text(encoding="utf-8")))
        for path in sorted(folder.glob("*/expect.json"))
    ]


def judged_by_compiler(condition: dict[str, Any]) -> bool:
    """Whether `condition` needs a compiler and headers that this machine lacks."""
    return "syntax" in condition and (
        hip_clang() is None or all(isinstance(include_folder(hip), str) for hip in condition["hip"])
    )


def _holds(condition: dict[str, Any], run: Conversion) -> bool:
    if "report" in condition:
        about = re.compile(condition.get("about", ""), re.IGNORECASE)
        return any(f["rule"] and about.search(_words(f)) for f in run.at(condition["report"]))
    if "syntax" in condition:
        if judged_by_compiler(condition):
            return True
        return any(_compiles(run.out, condition["syntax"], hip) for hip in condition["hip"])
    path = run.out / condition["file"]
    text = path.read_bytes().decode("latin-1")
    if not condition.get("raw"):
        text = run.text(condition["file"])
    return all(re.search(p, text) for p in condition.get("has", ())) and not any(
        re.search(p, text) for p in condition.get("lacks", ())
    )


def _words(finding: dict[str, Any]) -> str:
    return " ".join(str(value) for value in finding.values())


def _compiles(out: Path, file: str, hip: str) -> bool:
    include = include_folder(hip)
    clang = hip_clang()
    if isinstance(include, str) or clang is None:
        return False
    command = [clang, "-fsyntax-only", "-w", "-D__HIP_PLATFORM_AMD__"]
    command += ["-DHIP_ENABLE_WARP_SYNC_BUILTINS=1", f"-I{out}", f"-I{include}"]
    if not file.endswith(".c"):
        command.append("-std=c++17")
    if file.endswith(".cu"):
        command += ["-x", "hip", "--cuda-host-only", "--offload-arch=gfx942", "-nogpulib"]
        command.append(f"--rocm-path={include.parent}")
    done = subprocess.run([*command, file], cwd=out, capture_output=True, check=False)
    return done.returncode == 0
