"""Open a target, settle its platform and policy, run all checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from port.policy import load
from port.verify.case import Case, infer
from port.verify.checks import ALL
from port.verify.contents import open_target
from port.verify.report import Report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from port.policy import Policy


def judge(
    target: str | Path,
    platform: str | None,
    policy: Policy | None,
    architectures: Sequence[str],
    *,
    before: str | Path | None,
    installed: bool,
) -> Report:
    """What `port.verify.verify` documents."""
    contents = open_target(str(target), installed=installed)
    if platform is not None:
        chosen, how = platform, "as asked for"
    elif policy is not None:
        chosen, how = policy.platform, f"by the policy {policy.source}"
    else:
        guessed, how = infer(contents)
        chosen = guessed or ""
    own = policy
    strict = policy is not None
    if own is None:
        own = load(chosen or "cpu")
        name = contents.metadata.name if contents.metadata else ""
        strict = own.distribution is not None and canonicalize_name(name) == own.distribution
        if not strict:
            own = own.for_others()
    case = Case(
        contents=contents,
        platform=chosen or None,
        how=how,
        policy=own,
        strict=strict,
        asked=platform is not None,
        architectures=tuple(architectures),
        before=None if before is None else open_target(str(before)),
    )
    checks = [verdict for check in ALL for verdict in check(case)]
    return Report(str(target), case.platform, tuple(checks))
