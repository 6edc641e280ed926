"""`python -m port.hipify.tables_gen [--cache DIR] [--out DIR] [--only NAME]`."""

from __future__ import annotations

import logging
import re
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import click
from clang import cindex

from port.cli import run
from port.hipify.tables_gen import extract, merge
from port.hipify.tables_gen.fetch import Cache

_HERE = Path(__file__).parent
_log = logging.getLogger(__name__)

# What the graphics headers of CUDA and HIP need of headers that belong to neither.
_STUBS = {
    "GL/gl.h": "typedef unsigned int GLuint, GLenum; typedef int GLint; typedef int GLsizei;\n",
    "GL/glew.h": '#include "gl.h"\n',
    "EGL/egl.h": "typedef void *EGLSyncKHR, *EGLImageKHR, *EGLStreamKHR; typedef int EGLint;\n",
    "EGL/eglext.h": '#include "egl.h"\n',
    "vdpau/vdpau.h": "typedef unsigned VdpDevice, VdpVideoSurface, VdpOutputSurface, VdpStatus;\n"
    "typedef VdpStatus VdpGetProcAddress(VdpDevice, unsigned, void **);\n",
}
# Header trees that are namespaces of templates: their file names are listed, nothing is read.
_LISTED_ONLY = re.compile(r"(cccl/)?(cub|thrust|cuda|nv|hipcub)/")
_HEADER = re.compile(r"\.(h|hpp|cuh|inl)$|^(cccl/)?(cuda|nv)/[\w/]+$")
# Headers of other makers that NVIDIA's packages bring along are not CUDA's.
_DETAIL = re.compile(
    r"^(CL|Openacc|Openmp)/|(^|/)(__\w+|detail|details|amd_detail|nvidia_detail|nvtxDetail|impl)/"
)

# What every C and C++ program has; CUDA's headers declare it again for device code.
_STANDARD = (
    *("math.h", "stdlib.h", "stdio.h", "string.h", "stdint.h", "limits.h", "assert.h", "time.h"),
    *("cmath", "cstdlib", "algorithm", "new", "limits"),
)
# What compilers predefine, and the overloads of min and max.
_COMMON = re.compile(r"(__(cdecl|stdcall|forceinline|inline__|forceinline__|restrict__)|min|max)$")


@click.command()
@click.option("--cache", type=click.Path(path_type=Path), default=Path(".cache/tables"))
@click.option("--out", type=click.Path(path_type=Path), default=_HERE.parent / "data")
@click.option("--only", multiple=True, help="cuda, or a HIP release; default: all")
def main(cache: Path, out: Path, only: tuple[str, ...]) -> None:
    """Fetch the headers, read them, write the tables."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with (_HERE / "sources.toml").open("rb") as file:
        sources = tomllib.load(file)
    generator = _Generator(Cache(cache), sources, out)
    if not only or "cuda" in only:
        generator.cuda()
    for release in sources["hip"]["releases"]:
        if not only or release["release"] in only:
            generator.hip(release)


class _Generator:
    def __init__(self, cache: Cache, sources: dict[str, Any], out: Path) -> None:
        self._cache = cache
        self._sources = sources
        self._out = out
        parser = sources["parser"]
        root = cache.debian(parser["debian"], parser["packages"])
        self._resources = root / parser["resources"]
        cindex.Config.set_library_file(str(root / parser["library"]))
        arguments = ("-x", "c++", "-std=c++17", f"-resource-dir={self._resources}")
        self._standard = extract.read(extract.Unit(_STANDARD, (Path("/"),), arguments)).records

    def cuda(self) -> None:
        """Write cuda.tsv.gz."""
        readings, headers, packages = [], dict[str, None](), []
        for release in self._sources["cuda"]["releases"]:
            trees = [self._cache.wheel(each) for each in release["pypi"]]
            roots = [root for tree in trees for root in _roots(tree)]
            packages.append({"release": release["release"], "packages": release["pypi"]})
            headers.update(dict.fromkeys(_headers(roots)))
            for name, unit in self._sources["cuda"]["units"].items():
                label = f"cuda {release['release']} {name}"
                records = self._read(label, roots, unit)
                wanted = re.compile(unit.get("names", ""))
                readings.append(
                    {k: r for k, r in records.items() if wanted.search(k) and self._is_cudas(k)}
                )
        self._write("cuda", readings, {"table": "cuda", "sources": packages}, list(headers))

    def _is_cudas(self, name: str) -> bool:
        return name not in self._standard and not _COMMON.match(name)

    def hip(self, release: dict[str, Any]) -> None:
        """Write hip-<release>.tsv.gz."""
        roots = []
        for tree in release["trees"]:
            if "pypi" in tree:
                wheels = [self._cache.wheel(each) for each in tree["pypi"]]
                under = tree["under"]
                roots += [r for each in wheels for r in _roots(each) if str(r).endswith(under)]
            else:
                roots.append(self._cache.debian(tree["debian"], tree["packages"]) / "usr/include")
        label = f"hip {release['release']}"
        unit = self._sources["hip"]["unit"]
        records = self._read(label, [*roots, self._resources / "include"], unit)
        meta = {"table": "hip", "release": release["release"], "sources": release["trees"]}
        self._write(f"hip-{release['release']}", [records], meta, _headers(roots))

    def _read(
        self, label: str, roots: list[Path], unit: dict[str, Any]
    ) -> dict[str, extract.Record]:
        there = [name for name in unit["headers"] if any((r / name).is_file() for r in roots)]
        with tempfile.TemporaryDirectory() as stubs:
            for name, text in _STUBS.items():
                place = Path(stubs) / name
                place.parent.mkdir(exist_ok=True)
                place.write_text(text)
            arguments = [
                *unit["arguments"],
                f"-resource-dir={self._resources}",
                f"-I{self._resources}",
                f"-I{stubs}",
            ]
            reading = extract.read(extract.Unit(tuple(there), tuple(roots), tuple(arguments)))
        absent = sorted(set(unit["headers"]) - set(there))
        _log.info("%s: %d names, without %s", label, len(reading.records), ", ".join(absent))
        for error in reading.errors[:5]:
            _log.warning("  %s", error)
        return {
            name: record
            for name, record in reading.records.items()
            if not _LISTED_ONLY.match(record.header)
        }

    def _write(
        self,
        name: str,
        readings: list[dict[str, extract.Record]],
        meta: dict[str, object],
        headers: list[str],
    ) -> None:
        records = merge.merge(readings)
        path = self._out / f"{name}.tsv.gz"
        size = merge.write(path, records, meta, headers)
        _log.info("%s: %d names, %d bytes", path, len(records), size)


def _roots(tree: Path) -> list[Path]:
    """The outermost `include` folders of an unpacked wheel."""
    found = sorted(tree.rglob("include"), key=lambda each: len(each.parts))
    return sorted(each for each in found if not any(p in each.parents for p in found))


def _headers(roots: list[Path]) -> list[str]:
    found = {
        str(each.relative_to(root))
        for root in roots
        for each in root.rglob("*")
        if each.is_file() and "include" not in each.relative_to(root).parts
    }
    return sorted(
        re.sub(r"^cccl/", "", name)
        for name in found
        if _HEADER.search(name) and not _DETAIL.search(name) and name.count("/") < 4
    )


if __name__ == "__main__":
    run(main)
