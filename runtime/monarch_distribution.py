"""Tell whether the installed files of one distribution of monarch are still its own.

Each distribution carries this file under its own name (`monarch_cpu`, `monarch_cuda`,
`monarch_rocm`), which no other distribution overwrites or removes: `python -m monarch_cuda` works
where nothing else of the package is left. It needs the standard library alone.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import shlex
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

CLEAN, FINDINGS = 0, 1


@dataclass(frozen=True, slots=True)
class Damage:
    """An installed file that is not as the distribution installed it."""

    path: str
    what: str


def recorded(distribution: metadata.Distribution) -> dict[str, str]:
    """Each file that RECORD names, and its hash as `ALGORITHM=TEXT`, empty where it has none.

    `distribution.files` is not that: from Python 3.12 on it leaves out what is missing.
    """
    lines = csv.reader((distribution.read_text("RECORD") or "").splitlines())
    return {line[0]: line[1] for line in lines if len(line) > 1}


def damages(distribution: metadata.Distribution) -> list[Damage]:
    """Files of `distribution` that are missing, or whose bytes differ from its RECORD."""
    found = []
    for file, wanted in recorded(distribution).items():
        path = Path(str(distribution.locate_file(file)))
        algorithm, _, value = wanted.partition("=")
        if not path.is_file():
            if wanted:
                found.append(Damage(file, "missing"))
        elif wanted and _digest(path, algorithm) != value:
            found.append(Damage(file, "not its own"))
    return found


def others(name: str) -> list[str]:
    """Other installed distributions that hold the package `monarch`."""
    known = ("monarch-cpu", "monarch-cuda", "monarch-rocm", "torchmonarch", "monarch")
    found = []
    for other in known:
        if other == name:
            continue
        try:
            metadata.distribution(other)
        except metadata.PackageNotFoundError:
            continue
        found.append(other)
    return found


def report(name: str) -> tuple[int, str]:
    """Exit status and text for the distribution `name`."""
    python = sys.executable or "python"
    try:
        distribution = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return FINDINGS, (
            f"{name} is not installed: its module was left behind or copied\n"
            f"Install it:\n  {python} -m pip install {name}"
        )
    found, beside = damages(distribution), others(name)
    files = len(recorded(distribution))
    title = f"{name} {distribution.version} in {distribution.locate_file('')}"
    if not found and not beside:
        return CLEAN, f"{title}: all {files} files are its own"
    lines = [f"{title}: {len(found)} of {files} files are not as installed"]
    lines += [f"  {damage.path}: {damage.what}" for damage in found]
    if beside:
        lines.append(f"Also installed, with files of the same names: {', '.join(beside)}")
        lines.append("Remove all of them and install the one you want, for instance:")
        lines.append(f"  {python} -m pip uninstall --yes {' '.join([name, *beside])}")
        lines.append(f"  {python} -m pip install {name}")
    else:
        lines.append("Another distribution has overwritten or removed them. Install it again:")
        source = _source(distribution) or name
        lines.append(f"  {python} -m pip install --force-reinstall --no-deps {source}")
    return FINDINGS, "\n".join(lines)


def _source(distribution: metadata.Distribution) -> str | None:
    """What pip installs an editable distribution from; None for any other (PEP 610)."""
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    if not origin.get("dir_info", {}).get("editable"):
        return None
    return f"-e {shlex.quote(unquote(urlsplit(origin['url']).path))}"


def _digest(path: Path, algorithm: str) -> str:
    digest = hashlib.new(algorithm, path.read_bytes()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


if __name__ == "__main__":
    status, text = report(Path(__file__).stem.replace("_", "-"))
    print(text)  # noqa: T201 - the command's answer
    sys.exit(status)
