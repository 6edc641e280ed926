"""V01, V02, V03 and V09: which GPU runtime a target links, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.verify.case import calls, listing, platforms_of
from port.verify.facts import CUDART_MARKERS
from port.verify.report import failed, passed
from port.verify.words import family, is_driver, is_shared_name, library_base, matches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.verify.case import Case
    from port.verify.facts import Elf
    from port.verify.report import Check

_NONE = "no native code"
_MARKERS = " and ".join(CUDART_MARKERS)


def cuda_runtime(case: Case) -> Iterator[Check]:
    """V01: a CUDA wheel holds the CUDA runtime itself, as the policy says."""
    if case.platform != "cuda":
        yield passed("V01", f"not a CUDA target (platform {case.platform or 'mixed'})")
        return
    if not case.natives:
        yield passed("V01", _NONE)
        return
    wrong = [*_cuda_needs(case), *_cuda_bundled(case)]
    yield from wrong
    if case.policy.runtime_linkage != "static":
        yield from _required(case, "V01")
        if not wrong:
            yield passed("V01", f"linked as the policy wants it ({case.policy.runtime_linkage})")
        return
    proven = [name for name, elf in case.natives.items() if _static(elf)]
    for name in proven:
        yield passed(
            "V01",
            "static CUDA runtime: no libcudart in NEEDED, no undefined cuda* symbol, markers "
            f"{_MARKERS} present",
            name,
        )
    if not proven and not wrong:
        yield failed(
            "V01",
            f"no file holds the static CUDA runtime: wanted the markers {_MARKERS} in one at least",
            "link with -cudart static (CMake: CUDA::cudart_static)",
            severity=case.severity,
        )


def _cuda_needs(case: Case) -> Iterator[Check]:
    for name, elf in case.natives.items():
        found = [
            library
            for library in elf.needed
            if matches(library, case.policy.needed_forbidden) and not is_driver(library)
        ]
        if found:
            yield failed(
                "V01",
                f"NEEDED names {listing(found)}; the policy forbids it",
                "link the CUDA runtime statically (-cudart static) and open the other libraries "
                "at run time; a project that links them on purpose says so in its policy file",
                name,
            )
        undefined = calls(elf, "cuda")
        outside = {family(library) for library in case.closure(name)[1]}
        if undefined and "cuda" not in outside and not _provided(case, name, undefined):
            yield failed(
                "V01",
                "undefined CUDA runtime symbols that nothing it needs has: "
                f"{listing(undefined, 5)}",
                "link with -cudart static",
                name,
            )


def _cuda_bundled(case: Case) -> Iterator[Check]:
    for name in _bundled(case):
        if not is_driver(name):
            yield failed(
                "V01",
                f"{library_base(name)} is bundled; the policy forbids it",
                "keep it out of the wheel (auditwheel repair --exclude) and link statically",
                name,
            )


def _static(elf: Elf) -> bool:
    return (
        len(elf.static_cudart) == len(CUDART_MARKERS)
        and not any(library_base(library) == "libcudart" for library in elf.needed)
        and not calls(elf, "cuda")
    )


def _provided(case: Case, name: str, wanted: list[str]) -> bool:
    inside, _ = case.closure(name)
    held = {symbol for file in inside - {name} for symbol in case.natives[file].exported}
    return held.issuperset(wanted)


def _bundled(case: Case) -> list[str]:
    return [
        name
        for name in case.contents.files
        if is_shared_name(name) and matches(library_base(name), case.policy.bundled_forbidden)
    ]


def _required(case: Case, code: str) -> Iterator[Check]:
    for pattern in case.policy.needed_required:
        found = next(
            (
                (name, library)
                for name, elf in case.natives.items()
                for library in elf.needed
                if matches(library, (pattern,))
            ),
            None,
        )
        if found:
            yield passed(code, f"NEEDED names {found[1]}", found[0])
        else:
            yield failed(
                code,
                f"no file has {pattern} in NEEDED, wanted in one at least",
                "link the GPU module against it, and keep repair from renaming it "
                f"(--exclude '{pattern}')",
                severity=case.severity,
            )


def driver(case: Case) -> Iterator[Check]:
    """V02: the driver is opened at run time, neither needed nor bundled."""
    wrong = False
    for name, elf in case.natives.items():
        found = [
            library
            for library in elf.needed
            if is_driver(library) and matches(library, case.policy.needed_forbidden)
        ]
        if found and case.platform in ("cuda", None):
            wrong = True
            yield failed(
                "V02",
                f"NEEDED names the driver library {listing(found)}: loading fails on a machine "
                "without a driver",
                "open it at run time (dlopen, or cudaGetDriverEntryPoint) and link without -lcuda",
                name,
            )
    for name in case.contents.files:
        if is_shared_name(name) and is_driver(name):
            wrong = True
            base = library_base(name)
            yield failed(
                "V02",
                f"the driver library {base} is bundled: it has to match the machine's kernel "
                "module",
                f"keep it out of the wheel (auditwheel repair --exclude '{base}.so.*')",
                name,
            )
    if not wrong:
        yield passed("V02", "no driver library in NEEDED, none bundled")


def rocm_runtime(case: Case) -> Iterator[Check]:
    """V03: a ROCm wheel needs the machine's HIP runtime and bundles nothing of ROCm."""
    if case.platform != "rocm":
        yield passed("V03", f"not a ROCm target (platform {case.platform or 'mixed'})")
        return
    if not case.natives:
        yield passed("V03", _NONE)
        return
    bundled = _bundled(case)
    for name in bundled:
        base = library_base(name)
        yield failed(
            "V03",
            f"the ROCm library {base} is bundled; it belongs to the machine (all that are "
            f"bundled: {listing(sorted(set(map(library_base, bundled))), 40)})",
            f"keep it out of the wheel: auditwheel repair --exclude '{base}.so.*' (the pattern "
            "has to match the versioned name)",
            name,
        )
    for name, elf in case.natives.items():
        forbidden = [
            library
            for library in elf.needed
            if matches(library, case.policy.needed_forbidden) and family(library) != "cuda"
        ]
        if forbidden:
            yield failed(
                "V03",
                f"NEEDED names {listing(forbidden)}; the policy forbids it",
                "open it at run time, or allow it in the policy file",
                name,
            )
        if not _reaches_hip(case, name, elf):
            yield failed(
                "V03",
                f"calls HIP ({listing(calls(elf, 'rocm'), 5)}), but nothing that it needs is a "
                "ROCm library",
                "link it against libamdhip64",
                name,
            )
    yield from _required(case, "V03")
    if not bundled and not case.policy.needed_required:
        yield passed("V03", "no ROCm library is bundled")


def _reaches_hip(case: Case, name: str, elf: Elf) -> bool:
    undefined = calls(elf, "rocm")
    if not undefined or _provided(case, name, undefined):
        return True
    brought = {pattern for held in case.policy.provided.values() for pattern in held}
    outside = case.closure(name)[1]
    return any(family(library) == "rocm" or matches(library, brought) for library in outside)


def platform(case: Case) -> Iterator[Check]:
    """V09: device code and libraries are those of the platform, and of it alone."""
    if case.platform is None:
        yield failed(
            "V09",
            case.how,
            "build one wheel per platform, or say by --platform which one is meant",
            severity="warning",
        )
        return
    wrong = False
    for name, elf in case.natives.items():
        for other in sorted(platforms_of(elf) - {case.platform}):
            wrong = True
            yield failed(
                "V09",
                f"platform {case.platform} ({case.how}), but it has {_evidence(elf, other)}",
                f"build this file with GPU_PLATFORM={case.platform} (HIP_PLATFORM=amd for hipcc, "
                "which takes an installed nvcc otherwise)",
                name,
            )
        strange = [
            library
            for library in elf.needed
            if case.platform == "cpu"
            and family(library) is None
            and matches(library, case.policy.needed_forbidden)
        ]
        if strange:
            wrong = True
            yield failed(
                "V09", f"NEEDED names {listing(strange)}; the policy forbids it", "unlink it", name
            )
    if not wrong:
        yield passed("V09", f"platform {case.platform} ({case.how})")


def _evidence(elf: Elf, platform: str) -> str:
    names = (".nv_fatbin", "__nv_relfatbin") if platform == "cuda" else (".hip_fatbin",)
    found = [section.name for section in elf.device if section.name in names]
    libraries = [library for library in elf.needed if family(library) == platform]
    if libraries:
        found.append(f"NEEDED {listing(libraries)}")
    if not found:
        found.append("the static CUDA runtime" if platform == "cuda" else "registered kernels")
    return f"{' and '.join(found)} of {platform}"
