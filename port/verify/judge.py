"""Open a target, settle its platform and policy, run all checks."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING

from port.policy import load
from port.verify.case import Case, infer
from port.verify.checks import ALL
from port.verify.contents import open_target
from port.verify.metadata import canonical
from port.verify.report import Report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from port.policy import Policy
    from port.verify.contents import Contents


def judge(
    target: str | Path,
    platform: str | None,
    policy: Policy | None,
    architectures: Sequence[str],
    *,
    before: str | Path | None,
    installed: bool,
    sources: Path | None,
) -> Report:
    """What `port.verify.verify` documents."""
    with ExitStack() as stack:
        contents = stack.enter_context(closing(open_target(str(target), installed=installed)))
        earlier = None
        if before is not None:
            earlier = stack.enter_context(closing(open_target(str(before))))
        case = _case(contents, platform, policy)
        case = replace(case, architectures=tuple(architectures), before=earlier)
        checks = [verdict for check in ALL for verdict in check(case)]
    if sources is not None:
        checks += judge_sources(sources).checks
    return Report(str(target), case.platform, tuple(checks))


def judge_sources(root: Path) -> Report:
    """What `port.verify.verify_sources` documents."""
    from port.verify.sources import check_sources  # noqa: PLC0415 - it brings all of hipify

    return Report(str(root), "rocm", tuple(check_sources(root)))


def _case(contents: Contents, platform: str | None, policy: Policy | None) -> Case:
    """Settle the platform, and how much of its policy holds for this target."""
    if platform is not None:
        chosen: str | None = platform
        how = "as asked for"
    elif policy is not None:
        chosen, how = policy.platform, f"by the policy {policy.source}"
    else:
        chosen, how = infer(contents)
    strict = policy is not None
    if policy is None:
        policy = load(chosen or "cpu")
        strict = canonical(contents.name) == policy.distribution
        if not strict:
            policy = policy.for_others()
    return Case(contents, chosen, how, policy, strict=strict, asked=platform is not None)
