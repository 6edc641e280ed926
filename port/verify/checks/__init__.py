"""The checks, in the order of their codes. Each is a function from a case to verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.verify.checks import (
    content,
    device,
    identity,
    linkage,
    majors,
    paths,
    record,
    symbols,
    tags,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from port.verify.case import Case
    from port.verify.report import Check

ALL: tuple[Callable[[Case], Iterator[Check]], ...] = (
    linkage.cuda_runtime,
    linkage.driver,
    linkage.rocm_runtime,
    majors.linked_major,
    paths.run_path,
    paths.run_path_tag,
    device.device_code,
    paths.version_needs,
    linkage.platform,
    device.architectures,
    tags.platform_tag,
    majors.version_label,
    content.size,
    identity.identity,
    symbols.unresolved,
    record.record,
    symbols.interpreter_safety,
    symbols.exports,
    content.archive,
    content.native_code,
    content.stand_in,
    content.library_twins,
)
