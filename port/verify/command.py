"""The command line of `port.verify`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from port.architectures import check_known
from port.errors import ExitCode, InputError, PortError
from port.policy import PLATFORMS, load
from port.text import printable
from port.verify import Report, verify, verify_sources
from port.verify.report import SCHEMA


@click.command(
    short_help="Prove what each TARGET links and holds.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0 clean (warnings included), 1 an error was found, 2 wrong usage or a "
    "target that is none of the four kinds or damaged, 3 a limit of size, time or memory was hit.",
)
@click.argument("targets", nargs=-1, metavar="TARGET...")
@click.option(
    "--platform",
    type=click.Choice(PLATFORMS),
    help="Platform to judge for. Without it: the policy's, else what the target says or links.",
)
@click.option(
    "--policy",
    "policy_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Policy file (TOML). Without it the platform's own applies; device code, architectures, "
    "exports and sizes are then demanded of Monarch's wheels alone.",
)
@click.option(
    "--arch",
    "architectures",
    multiple=True,
    metavar="NAME[,NAME]",
    help="Architecture that device code has to be there for (sm_90, gfx942); may be repeated.",
)
@click.option(
    "--before",
    type=click.Path(path_type=Path),
    metavar="WHEEL",
    help="The wheel as it was before repair: device code has to be the same (one TARGET only).",
)
@click.option("--installed", is_flag=True, help="TARGETs are names of installed distributions.")
@click.option(
    "--sources",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Also check that DIR/native/hip is what port.hipify makes of DIR/native/cuda.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(
    targets: tuple[str, ...],
    *,
    platform: str | None,
    policy_file: Path | None,
    architectures: tuple[str, ...],
    before: Path | None,
    installed: bool,
    sources: Path | None,
    as_json: bool,
) -> int:
    """Prove what each TARGET links and holds: a wheel, a folder, a shared object, or the name of
    an installed distribution. Targets are read, never imported, run or unpacked to disk.

    As cibuildwheel's audit command: audit-command = "python -m port.verify --platform rocm {wheel}"
    """
    if not targets and sources is None:
        raise click.UsageError("name a TARGET, or --sources DIR")
    if before is not None and len(targets) != 1:
        raise click.UsageError("--before compares with one TARGET")
    policy = None if policy_file is None else load(policy_file)
    if policy and platform and policy.platform != platform:
        raise InputError(
            f"{policy.source}: platform: the policy is for {policy.platform}, "
            f"--platform says {platform}"
        )
    wanted = [name for value in architectures for name in value.replace(",", " ").split()]
    for name in wanted:
        check_known(name)
    reports: list[Report] = []
    status = ExitCode.CLEAN
    for target in targets or (None,):
        try:
            report = (
                verify_sources(sources or Path())
                if target is None
                else verify(
                    target,
                    platform,
                    policy,
                    wanted,
                    before=before,
                    installed=installed,
                    sources=sources,
                )
            )
        except PortError as error:
            click.echo(printable(f"error: {error}"), err=True)
            status = max(status, error.exit_code)
            continue
        reports.append(report)
        status = status if report.ok else max(status, ExitCode.FINDINGS)
        if not as_json:
            click.echo(report.to_text())
    if as_json and reports:
        alone = len(targets) <= 1
        click.echo(json.dumps(_document(reports, alone=alone, ok=not status), indent=1))
    return status


def _document(reports: list[Report], *, alone: bool, ok: bool) -> dict[str, object]:
    if alone:
        return reports[0].to_json()
    return {"schema": SCHEMA, "ok": ok, "targets": [report.to_json() for report in reports]}
