"""Session calls: instructions of a call, which repeat where times do not."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

from ci import cpp, project

if TYPE_CHECKING:
    import nox

FIGURES = project.ROOT / "benchmarks/runtime/instructions.json"
TOLERANCE = 0.03
_FEW, _MANY = 500, 1500
_TOTAL = re.compile(r"^(?:summary|totals):\s*(\d+)", re.MULTILINE)


def per_call(totals: dict[int, int]) -> int:
    """Instructions of one call, of the totals of a run with few calls and one with many."""
    (few, least), (many, most) = sorted(totals.items())
    return round((most - least) / (many - few))


def total_of(profile: str) -> int:
    """The instructions of a whole run, of what callgrind wrote about it."""
    found = _TOTAL.search(profile)
    if found is None:
        raise ValueError("callgrind wrote no total")
    return int(found.group(1))


def findings(counted: dict[str, int], agreed: dict[str, int], tolerance: float) -> list[str]:
    """What takes more instructions than agreed, or is not agreed at all."""
    found = []
    for path, count in sorted(counted.items()):
        if path not in agreed:
            found.append(f"{path}: {count} instructions, and no figure to compare with")
        elif count > agreed[path] * (1 + tolerance):
            more = 100 * (count / agreed[path] - 1)
            found.append(f"{path}: {count} instructions, {more:.0f} % above {agreed[path]}")
    return found


def compiler() -> str:
    """What the figures belong to: another compiler makes other code."""
    version = subprocess.run(
        ["c++", "-dumpfullversion"], capture_output=True, text=True, check=True
    ).stdout.strip()
    machine = subprocess.run(
        ["c++", "-dumpmachine"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return f"g++ {version} {machine}"


def count(session: nox.Session, path: str) -> int:
    totals = {}
    for calls in (_FEW, _MANY):
        profile = cpp.CALL_PATH.folder / f"{path}-{calls}.callgrind"
        session.run(
            "valgrind",
            "--tool=callgrind",
            "--quiet",
            f"--toggle-collect=*measure_{path}*",
            f"--callgrind-out-file={profile}",
            str(cpp.CALL_PATH.folder / "call_path"),
            path,
            str(calls),
            external=True,
            silent=True,
        )
        totals[calls] = total_of(profile.read_text(encoding="utf-8"))
    return per_call(totals)


def check(session: nox.Session) -> None:
    """Count, compare with the figures of this compiler, and say both."""
    cpp.build(session, cpp.CALL_PATH)
    counted = {path: count(session, path) for path in ("engine", "link")}
    known = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    name = compiler()
    for path, figure in counted.items():
        session.log(f"{path}: {figure} instructions a call, agreed {known.get(name, {}).get(path)}")
    if "--update" in session.posargs:
        known[name] = counted
        FIGURES.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    elif name not in known:
        session.warn(f"no figures of {name} in {FIGURES}: nothing to compare with")
    elif found := findings(counted, known[name], TOLERANCE):
        session.error("; ".join(found))
