"""Make the stub (`.pyi`) of a native module by loading it, also where its GPU runtime is absent.

GPU libraries that the module needs are replaced, for that one process, by empty ones with the same
soname, symbols and symbol versions. They stay in the build folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import SymbolTableSection

from port.cli import run
from port.errors import PortError

if TYPE_CHECKING:
    from collections.abc import Mapping

SYSTEM = (
    "libc.so",
    "libm.so",
    "libdl.so",
    "librt.so",
    "libpthread.so",
    "libgcc_s.so",
    "libstdc++.so",
    "ld-linux",
)
"""Libraries that every machine with a compiler has."""


class StubError(PortError):
    """A stub that could not be made."""


def wanted_symbols(module: Path) -> dict[str, dict[str, list[str]]]:
    """Undefined symbols of a module: library, then symbol version ("" for none), then names.

    A symbol without a version belongs to no library by name; those are listed under each library
    that states no versions at all.

    Raises:
        StubError: it has no dynamic symbols.

    """
    with module.open("rb") as stream:
        elf = ELFFile(stream)
        dynamic = elf.get_section_by_name(".dynamic")
        symbols = elf.get_section_by_name(".dynsym")
        versions = elf.get_section_by_name(".gnu.version")
        needs = elf.get_section_by_name(".gnu.version_r")
        if not isinstance(dynamic, DynamicSection) or not isinstance(symbols, SymbolTableSection):
            raise StubError(f"{module}: no dynamic symbols; it is not a Python module")
        libraries = [str(getattr(tag, "needed")) for tag in dynamic.iter_tags("DT_NEEDED")]  # noqa: B009
        owners: dict[int, tuple[str, str]] = {}
        if isinstance(needs, GNUVerNeedSection):
            for need, auxiliaries in needs.iter_versions():
                for auxiliary in auxiliaries:
                    owners[auxiliary["vna_other"]] = (str(need.name), auxiliary.name)
        wanted: dict[str, dict[str, list[str]]] = {
            library: defaultdict(list) for library in libraries
        }
        stating = {library for library, _ in owners.values()}
        for index, symbol in enumerate(symbols.iter_symbols()):
            if symbol["st_shndx"] != "SHN_UNDEF" or not symbol.name:
                continue
            number = 1
            if isinstance(versions, GNUVerSymSection):
                entry = versions.get_symbol(index)["ndx"]
                number = entry & 0x7FFF if isinstance(entry, int) else 1
            if number in owners:
                library, version = owners[number]
                wanted[library][version].append(symbol.name)
            elif symbol["st_info"]["bind"] != "STB_WEAK":
                for library in set(libraries) - stating:
                    wanted[library][""].append(symbol.name)
        return {library: dict(sets) for library, sets in wanted.items()}


def make_stand_ins(module: Path, compiler: str, folder: Path) -> list[Path]:
    """Build an empty library for every library that the module needs beside the system's own."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    made = []
    for soname, versions in sorted(wanted_symbols(module).items()):
        if soname.startswith(SYSTEM):
            continue
        made.append(_stand_in(soname, versions, compiler, folder))
    return made


def _stand_in(soname: str, versions: Mapping[str, list[str]], compiler: str, folder: Path) -> Path:
    names = sorted({name for group in versions.values() for name in group})
    source = folder / f"{soname}.cpp"
    # Registration of device code runs while the module is loaded, so the functions must exist and
    # may do nothing; a null handle is never used, as nothing is launched.
    body = "".join(f'extern "C" void* {name}() {{ return nullptr; }}\n' for name in names)
    source.write_text(body, encoding="utf-8")
    script = folder / f"{soname}.map"
    nodes = (
        f"{version} {{ global: {' '.join(f'{name};' for name in sorted(group))} }};\n"
        for version, group in sorted(versions.items())
        if version
    )
    script.write_text("".join(nodes), encoding="utf-8")
    library = folder / soname
    flags = ["-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{soname}"]
    if script.stat().st_size:
        flags.append(f"-Wl,--version-script,{script}")
    command = [compiler, *flags, str(source), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise StubError(f"no stand-in for {soname}: {done.stderr.strip()[-600:]}")
    return library


@click.command(name="stub")
@click.argument("module", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--compiler", required=True, help="C++ compiler.")
@click.option("--generator", required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--work", required=True, type=click.Path(path_type=Path), help="Scratch folder.")
@click.option("--output", required=True, type=click.Path(path_type=Path))
def command(module: Path, compiler: str, generator: Path, work: Path, output: Path) -> None:
    """Write the stub of MODULE."""
    name = module.name.partition(".")[0]
    made = make_stand_ins(module, compiler, work)
    environment = dict(os.environ)
    if made:
        environment["LD_LIBRARY_PATH"] = str(work)
    fresh = output.with_name(f".{output.name}.new")
    arguments = ["-q", "-i", str(module.parent), "-m", name, "-o", str(fresh)]
    done = subprocess.run(
        [sys.executable, str(generator), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 or not fresh.is_file():
        raise StubError(f"no stub for {module}: {(done.stderr or done.stdout).strip()[-800:]}")
    fresh.replace(output)


if __name__ == "__main__":
    run(command)
