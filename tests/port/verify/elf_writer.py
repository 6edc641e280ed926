"""Writes small ELF files, wheels and device code for tests: every byte is chosen here."""

from __future__ import annotations

import base64
import hashlib
import struct
import zipfile
import zlib

X86_64, AARCH64 = 62, 183
ET_EXEC, ET_DYN = 2, 3
MARKERS = b"cudart.shm\0cudaErrorCudartUnloading\0"
LIBC = {"libc.so.6": ["GLIBC_2.2.5"]}

_DT = {
    "NEEDED": 1, "HASH": 4, "STRTAB": 5, "SYMTAB": 6, "STRSZ": 10, "SYMENT": 11, "SONAME": 14,
    "RPATH": 15, "TEXTREL": 22, "RUNPATH": 29, "VERSYM": 0x6FFFFFF0, "VERNEED": 0x6FFFFFFE,
    "VERNEEDNUM": 0x6FFFFFFF, "FLAGS_1": 0x6FFFFFFB,
}  # fmt: skip
_PROGBITS, _STRTAB, _HASH, _DYNAMIC, _DYNSYM = 1, 3, 5, 6, 11
_ALLOC = 2


class _Strings:
    def __init__(self):
        self.data = b"\0"

    def add(self, text):
        at = self.data.find(b"\0" + text.encode() + b"\0")
        if at >= 0:
            return at + 1
        at = len(self.data)
        self.data += text.encode() + b"\0"
        return at


def elf(
    *,
    needed=("libc.so.6",),
    soname=None,
    rpath=None,
    runpath=None,
    needs=LIBC,
    undefined=(),
    weak=(),
    exported=(),
    rodata=b"",
    device=None,
    wrapper=None,
    stack=False,
    textrel=False,
    flags_1=0,
    machine=X86_64,
    kind=ET_DYN,
    chain=None,
):
    """A 64-bit ELF file whose file offsets are its addresses.

    `undefined` and `weak` hold names, or (name, version) with a version of `needs`. `device` maps
    section names to bytes. `wrapper` is (section name, magic, bytes added to the true address).
    `stack` None leaves PT_GNU_STACK out. `chain` is the number of version needs that is announced,
    and the step from each to the next.
    """
    strings = _Strings()
    versions, verneed = {}, b""
    for index, (file, names) in enumerate(needs.items()):
        step = 16 + 16 * len(names) if index + 1 < len(needs) else 0
        step = step if chain is None else chain[1]
        verneed += struct.pack("<HHIII", 1, len(names), strings.add(file), 16, step)
        for place, name in enumerate(names):
            versions[name] = 2 + len(versions)
            step = 0 if place + 1 == len(names) else 16
            verneed += struct.pack("<IHHII", 0, 0, versions[name], strings.add(name), step)
    symbols, versym = struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0), [0]
    listed = (
        [(u, 1, 0) for u in undefined] + [(u, 2, 0) for u in weak] + [(e, 1, 1) for e in exported]
    )
    for item, bind, section in listed:
        name, version = (item, None) if isinstance(item, str) else item
        symbols += struct.pack("<IBBHQQ", strings.add(name), bind << 4 | 2, 0, section, 0x40, 1)
        versym.append(versions[version] if version else 1)
    count = len(versym)
    chains = struct.pack(
        f"<{2 + 1 + count}I",
        1,
        count,
        1 if count > 1 else 0,
        *range(2, count),
        *[0] * min(2, count),
    )
    tags = [("NEEDED", strings.add(name)) for name in needed]
    for tag, value in (("SONAME", soname), ("RPATH", rpath), ("RUNPATH", runpath)):
        if value is not None:
            tags.append((tag, strings.add(value)))
    if textrel:
        tags.append(("TEXTREL", 0))
    if flags_1:
        tags.append(("FLAGS_1", flags_1))
    segments = 2 + (stack is not None)
    at = 64 + 56 * segments
    sections = [("", 0, 0, 0, b"", 0, 0, 1)]

    def put(name, kind_, data, *, flags=_ALLOC, link=0, entry=0, align=8):
        nonlocal at
        at = -(-at // align) * align
        sections.append((name, kind_, flags, at, data, link, entry, align))
        at += len(data)
        return sections[-1][3]

    places = {
        "STRTAB": put(".dynstr", _STRTAB, strings.data),
        "SYMTAB": put(".dynsym", _DYNSYM, symbols, link=1, entry=24),
        "HASH": put(".hash", _HASH, chains, link=2),
        "VERSYM": put(
            ".gnu.version", 0x6FFFFFFF, struct.pack(f"<{count}H", *versym), link=2, entry=2
        ),
    }
    if verneed:
        places["VERNEED"] = put(".gnu.version_r", 0x6FFFFFFE, verneed, link=1)
        tags.append(("VERNEEDNUM", chain[0] if chain else len(needs)))
    tags += [*places.items(), ("STRSZ", len(strings.data)), ("SYMENT", 24)]
    if rodata:
        put(".rodata", _PROGBITS, rodata)
    first = None
    for name, data in (device or {}).items():
        place = put(name, _PROGBITS, data, align=4096 if name == ".hip_fatbin" else 16)
        first = place if first is None else first
    if wrapper:
        name, magic, shift = wrapper
        put(name, _PROGBITS, struct.pack("<IIQQ", magic, 1, (first or 0) + shift, 0))
    dynamic = b"".join(struct.pack("<QQ", _DT[tag], value) for tag, value in tags) + bytes(16)
    dynamic_at = put(".dynamic", _DYNAMIC, dynamic, link=1, entry=16)
    names = _Strings()
    for section in sections:
        names.add(section[0])
    names.add(".shstrtab")
    put(".shstrtab", _STRTAB, names.data, flags=0)
    end = -(-at // 8) * 8
    out = bytearray(end)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    out[:64] = ident + struct.pack(
        "<HHIQQQIHHHHHH",
        kind,
        machine,
        1,
        0,
        64,
        end,
        0,
        64,
        56,
        segments,
        64,
        len(sections),
        len(sections) - 1,
    )
    headers = struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, end, end, 4096)
    headers += struct.pack(
        "<IIQQQQQQ", 2, 4, dynamic_at, dynamic_at, dynamic_at, len(dynamic), len(dynamic), 8
    )
    if stack is not None:
        headers += struct.pack("<IIQQQQQQ", 0x6474E551, 7 if stack else 6, 0, 0, 0, 0, 0, 16)
    out[64 : 64 + len(headers)] = headers
    for name, kind_, flags, place, data, link, entry, align in sections:
        out[place : place + len(data)] = data
        out += struct.pack(
            "<IIQQQQIIQQ",
            names.add(name),
            kind_,
            flags,
            place if flags else 0,
            place,
            len(data),
            link,
            0,
            align,
            entry,
        )
    return bytes(out)


def fatbin(*architectures, packed=False):
    """One CUDA fat binary with entries such as sm_90, sm_90a, sm_100f, compute_90."""
    payload = b""
    for name in architectures:
        kind, _, number = name.partition("_")
        flags = 0x11 | {"a": 0x100000, "f": 0x200000}.get(number[-1], 0) | (0x8000 if packed else 0)
        code = b"\x28\xb5\x2f\xfd" + bytes(28) if packed else b"\x7fELF" + bytes(28)
        payload += struct.pack(
            "<HHIQIIHHIIIQQQ", {"compute": 1, "sm": 2, "lto": 8}[kind], 0x101, 64, len(code),
            len(code) if packed else 0, 0, 8, 1, int(number.rstrip("af")), 0, 0, flags, 0, 99,
        )  # fmt: skip
        payload += code
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(payload)) + payload


def bundle(*architectures):
    """One clang offload bundle for HIP."""
    idents = [
        "host-x86_64-unknown-linux--",
        *(f"hipv4-amdgcn-amd-amdhsa--{a}" for a in architectures),
    ]
    code = b"\x7fELF\x02\x01\x01" + bytes(57)
    head = 32 + sum(24 + len(ident) for ident in idents)
    table, body, at = b"", b"", -(-head // 64) * 64
    for index, ident in enumerate(idents):
        size = len(code) if index else 0
        table += struct.pack("<QQQ", at, size, len(ident)) + ident.encode()
        body += code if index else b""
        at += size
    front = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(idents)) + table
    return front.ljust(-(-head // 64) * 64, b"\0") + body


def packed_bundle(data, *, version=2, pack=zlib.compress, method=0):
    """A CCOB container around a plain bundle."""
    body = pack(data)
    if version == 1:
        return b"CCOB" + struct.pack("<HHIQ", 1, method, len(data), 7) + body
    if version == 2:
        return b"CCOB" + struct.pack("<HHIIQ", 2, method, 24 + len(body), len(data), 7) + body
    return b"CCOB" + struct.pack("<HHQQQ", 3, method, 32 + len(body), len(data), 7) + body


CUDA_WRAPPER = (".nvFatBinSegment", 0x466243B1, 0)
HIP_WRAPPER = (".hipFatBinSegment", 0x48495046, 0)
HIP_NEEDS = {"libc.so.6": ["GLIBC_2.2.5"], "libamdhip64.so.6": ["hip_4.2"]}


def cpu_module(**changes):
    return elf(
        **{
            "exported": ["PyInit__C"],
            "undefined": ["PyModule_Create2", ("malloc", "GLIBC_2.2.5")],
            **changes,
        }
    )


def cuda_module(**changes):
    """An extension module with the static CUDA runtime and code for sm_80 and sm_90."""
    return cpu_module(
        **{
            "rodata": MARKERS,
            "device": {".nv_fatbin": fatbin("sm_80", "sm_90")},
            "wrapper": CUDA_WRAPPER,
            **changes,
        }
    )


def hip_module(**changes):
    """An extension module that needs libamdhip64.so.6 and has code for gfx90a and gfx942."""
    return cpu_module(
        **{
            "needed": ["libamdhip64.so.6", "libc.so.6"],
            "needs": HIP_NEEDS,
            "undefined": ["PyModule_Create2", ("hipMalloc", "hip_4.2")],
            "device": {".hip_fatbin": bundle("gfx90a", "gfx942")},
            "wrapper": HIP_WRAPPER,
            **changes,
        }
    )


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def wheel_files(
    files, name="demo", version="1.0", tag="cp311-cp311-manylinux_2_17_x86_64", requires=()
):
    """The files of a wheel, dist-info and RECORD included."""
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {item}\n" for item in requires)
    python, abi, platform = tag.split("-")
    tags = "".join(f"Tag: {python}-{abi}-{p}\n" for p in platform.split("."))
    pure = str(platform == "any").lower()
    files = {
        **files,
        f"{folder}/METADATA": metadata.encode(),
        f"{folder}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: {pure}\n{tags}".encode(),
    }
    record = "".join(record_line(n, d) for n, d in files.items()) + f"{folder}/RECORD,,\n"
    return {**files, f"{folder}/RECORD": record.encode()}


def write_zip(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def wheel(
    folder,
    files,
    name="demo",
    version="1.0",
    *,
    tag="cp311-cp311-manylinux_2_17_x86_64",
    requires=(),
    change=None,
):
    """Write a wheel into `folder`; `change` may alter the finished files."""
    whole = wheel_files(files, name, version, tag, requires)
    if change:
        whole = change(whole) or whole
    return write_zip(folder / f"{name.replace('-', '_')}-{version}-{tag}.whl", whole)
