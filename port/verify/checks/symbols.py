"""V15, V17 and V18: what a file asks of others, what it does to a process, what it exports."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from port.text import counted
from port.verify.case import listing
from port.verify.report import failed, passed
from port.verify.words import family, matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from port.verify.case import Case
    from port.verify.facts import Elf
    from port.verify.report import Check

# Libraries that every Linux system has in a compatible form (PEP 600 and its predecessors).
SYSTEM = (
    "linux-vdso.so.1", "ld-linux*.so.*", "ld64.so.*", "ld-musl-*.so.1", "libc.musl-*.so.1",
    "libc.so*", "libm.so.6", "libmvec.so.1", "libdl.so.2", "librt.so.1", "libpthread.so.0",
    "libutil.so.1", "libnsl.so.1", "libanl.so.1", "libresolv.so.2", "libgcc_s.so.1",
    "libstdc++.so.6", "libatomic.so.1",
    "libz.so.1", "libexpat.so.1", "libX11.so.6", "libXext.so.6", "libXrender.so.1", "libICE.so.6",
    "libSM.so.6", "libGL.so.1", "libglib-2.0.so.0", "libgobject-2.0.so.0", "libgthread-2.0.so.0",
)  # fmt: skip

CUDA_RUNTIME = "the CUDA runtime"
_HIDE = "link with a version script: { global: PyInit_*; local: *; };"
# Names of libraries that modules often link statically: exported, they answer for each other. For
# the C++ runtime none that old images link into every module to make up for an old libstdc++.
CLASHES: dict[str, re.Pattern[str]] = {
    "OpenSSL": re.compile(
        r"(SSL|X509|EVP|CRYPTO|BIO|RSA|ASN1|OPENSSL|BN|PEM|EC_KEY|PKCS7|DTLS|TLS)_[A-Za-z]\w*"
    ),
    "the C++ runtime": re.compile(
        r"__cxa_(throw|begin_catch|end_catch|allocate_exception|rethrow|guard_acquire)"
        r"|__gxx_personality_v0|_ZSt(4cout|4cerr|3cin|9terminatev)"
        r"|_ZNSt(8ios_base4InitC[12]Ev|6localeC[12]Ev|9exceptionD[012]Ev|9bad_allocD[012]Ev"
        r"|9type_infoD[012]Ev)"
    ),
    "zlib": re.compile(r"(inflate|deflate)(Init2?_|End|Reset)?|adler32|crc32"),
    "curl": re.compile(r"curl_(easy|multi|global)_\w+"),
    CUDA_RUNTIME: re.compile(r"cuda(Malloc|Free|Memcpy|GetDevice|LaunchKernel|SetDevice)"),
}


def unresolved(case: Case) -> Iterator[Check]:
    """V15: needed libraries come from somewhere, and have the symbols that are asked for."""
    wrong = False
    for check in _libraries(case):
        wrong = wrong or not check.ok
        yield check
    unclear: dict[str, list[str]] = {}
    for name, (missing, absent) in case.missing.items():
        nowhere = missing - _elsewhere(case, missing).keys()
        if nowhere and not absent:
            wrong = True
            yield failed(
                "V15",
                f"undefined symbols that nothing it needs has: {listing(sorted(nowhere), 8)}",
                "link the library that defines them, or list them in undefined.allowed",
                name,
            )
        elif absent:
            unclear[name] = sorted(absent)
    if not wrong:
        told = "; ".join(
            f"{name}: left to {listing(libraries, 4)}, which are not at hand"
            for name, libraries in list(unclear.items())[:4]
        )
        yield passed("V15", f"undefined symbols are accounted for{'; ' + told if told else ''}")


def _libraries(case: Case) -> Iterator[Check]:
    requires = case.contents.metadata.requires if case.contents.metadata else frozenset()
    brought: dict[str, set[str]] = {}
    for name, elf in case.natives.items():
        unknown = []
        for library in elf.needed:
            if case.bundled(library) or matches(library, SYSTEM) or family(library):
                continue
            if matches(library, case.policy.needed_required) or _libpython(library):
                continue
            source = next(
                (d for d, held in case.policy.provided.items() if matches(library, held)), None
            )
            if source is None:
                unknown.append(library)
            elif source in requires or case.contents.metadata is None:
                brought.setdefault(source, set()).add(library)
            else:
                yield failed(
                    "V15",
                    f"needs {library}, which {source} brings, but Requires-Dist does not name "
                    f"{source}",
                    f"add {source} to the project's dependencies",
                    name,
                )
        if unknown:
            yield failed(
                "V15",
                f"needs {listing(unknown)}: neither bundled nor part of every Linux system",
                "bundle it (auditwheel repair), open it at run time, or list it in "
                "needed.required or under provided in the policy",
                name,
                severity="warning",
            )
    for source, libraries in brought.items():
        yield passed("V15", f"from {source}: {listing(sorted(libraries))}")


def _libpython(library: str) -> bool:
    return library.startswith("libpython")


def _elsewhere(case: Case, symbols: Iterable[str]) -> dict[str, str]:
    """Those of `symbols` that some file of the target exports, and the file."""
    wanted = set(symbols)
    found: dict[str, str] = {}
    for name, elf in case.natives.items():
        for symbol in wanted & elf.exported.keys():
            found.setdefault(symbol, name)
    return found


def interpreter_safety(case: Case) -> Iterator[Check]:
    """V17: no libpython, no need for RTLD_GLOBAL, no executable stack, no text relocations."""
    wrong = False
    for check in _global_scope(case):
        wrong = True
        yield check
    for name, elf in case.natives.items():
        python = [library for library in elf.needed if _libpython(library)]
        if python and elf.is_library:
            wrong = True
            yield failed(
                "V17",
                f"NEEDED names {listing(python)}: a second interpreter, or none, would be loaded",
                "link extension modules without -lpython (CMake: Python::Module)",
                name,
            )
        if elf.stack:
            wrong = True
            yield failed(
                "V17",
                "asks for an executable stack: glibc 2.41 and later refuse to load it",
                "link with -Wl,-z,noexecstack; assembly needs a .note.GNU-stack section",
                name,
            )
        if elf.text_relocations:
            wrong = True
            yield failed(
                "V17",
                "has text relocations: its code is made writable while it is loaded",
                "compile everything that is linked into it with -fPIC",
                name,
                severity="warning",
            )
    if not wrong:
        yield passed(
            "V17", "no libpython, no need for RTLD_GLOBAL, no executable stack, no text relocations"
        )


def _global_scope(case: Case) -> Iterator[Check]:
    """Files that work only in the scope that all modules of a process share, or that enter it."""
    for name, (missing, absent) in case.missing.items():
        held = {} if absent else _elsewhere(case, missing)
        if held:
            yield failed(
                "V17",
                f"{listing(sorted(held), 5)}: only {listing(sorted(set(held.values())), 3)} has "
                "them, which it does not need, so that it loads only after somebody opened that "
                "with RTLD_GLOBAL; Python opens modules without",
                "link the library that defines them",
                name,
            )
    for name, elf in case.natives.items():
        if elf.is_global:
            yield failed(
                "V17",
                "is marked to be opened with RTLD_GLOBAL (DF_1_GLOBAL): its symbols answer for "
                "those of modules that are loaded later",
                "link without -z global",
                name,
                severity="warning",
            )


def exports(case: Case) -> Iterator[Check]:
    """V18: an extension module exports its entry point, not the libraries inside it."""
    wrong = False
    modules = {name: elf for name, elf in case.natives.items() if elf.is_extension}
    for name, elf in modules.items():
        for check in (*_clashing(case, name, elf), *_leaking(case, name, elf)):
            wrong = True
            yield check
    if not wrong:
        count = sum(len(elf.exported) for elf in modules.values())
        held = counted(len(modules), "extension module")
        yield passed("V18", f"{held}, {counted(count, 'exported symbol')}")


def _clashing(case: Case, name: str, elf: Elf) -> Iterator[Check]:
    """Symbols of well-known libraries, unless the policy says which symbols may be exported."""
    if case.policy.exports_allowed is not None:
        return
    for library, pattern in CLASHES.items():
        if library == CUDA_RUNTIME and not elf.static_cudart:
            continue  # functions of these names that are the module's own
        found = [s for s, weak in elf.exported.items() if not weak and pattern.fullmatch(s)]
        if found:
            yield failed(
                "V18",
                f"exports {counted(len(found), 'symbol')} of {library}, which is linked into it "
                f"({listing(sorted(found), 4)}): other modules of the process may be bound to them",
                _HIDE,
                name,
            )


def _leaking(case: Case, name: str, elf: Elf) -> Iterator[Check]:
    """All others but the entry point: an error where the policy says so, for strangers a hint."""
    allowed = case.policy.exports_allowed
    if allowed is None and case.strict:
        return
    wanted = allowed if allowed is not None else ("PyInit_*",)
    extra = sorted(symbol for symbol in elf.exported if not matches(symbol, wanted))
    if extra:
        yield failed(
            "V18",
            f"exports {counted(len(extra), 'symbol')} besides {listing(wanted)}: "
            f"{listing(extra, 5)}",
            _HIDE,
            name,
            severity="error" if allowed is not None else "warning",
        )
