"""Prove what a wheel, a folder, a shared object or an installed distribution links and holds.

>>> from port.verify import verify
    report = verify("dist/monarch_rocm-0.1.0-cp311-cp311-manylinux_2_34_x86_64.whl")
    report.ok, [check.code for check in report.checks if not check.ok]

Targets are read, never imported, loaded, run or unpacked to disk. `docs/verify.md` lists the
checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from port.policy import Policy
    from port.verify.report import Check, Report

__all__ = ["Check", "Report", "verify", "verify_sources"]


def __getattr__(name: str) -> object:
    # The child that reads ELF files imports this package as well, and needs no verdicts.
    if name in {"Check", "Report"}:
        from port.verify import report  # noqa: PLC0415

        return getattr(report, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def verify(
    target: str | Path,
    platform: str | None = None,
    policy: Policy | None = None,
    architectures: Sequence[str] = (),
    *,
    before: str | Path | None = None,
    installed: bool = False,
    sources: Path | None = None,
) -> Report:
    """Run all checks on one target.

    Without `policy` the platform's own applies: in full to the distribution that it names, else
    without its demands on device code, architectures, exports and sizes. Without `platform` the
    policy's is taken, else what the target says of itself or links. `before` is the wheel as it
    was ahead of repair. `installed` takes `target` as a distribution's name even where a path of
    that name exists. `sources` adds what `verify_sources` finds.

    Raises:
        InputError: the target (or `before`) is none of the four kinds, or damaged.
        LimitError: it goes past a limit of size, ratio, time or memory.

    """
    # What judges is loaded while the child starts.
    from port.verify import child  # noqa: PLC0415

    child.start()
    from port.verify.judge import judge  # noqa: PLC0415

    return judge(
        target,
        platform,
        policy,
        architectures,
        before=before,
        installed=installed,
        sources=sources,
    )


def verify_sources(root: Path) -> Report:
    """Check that `root`/native/hip is what port.hipify makes of `root`/native/cuda.

    Raises:
        InputError: there is no such folder.

    """
    from port.verify.judge import judge_sources  # noqa: PLC0415 - as above

    return judge_sources(root)
