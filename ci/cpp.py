"""Sessions cpp, sanitize and fuzz: the C++ core, built apart from Python."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ci import project

if TYPE_CHECKING:
    from pathlib import Path

    import nox

_SOURCES = project.ROOT / "runtime/core"
_SANITIZE = "-DCMAKE_CXX_FLAGS=-fno-omit-frame-pointer -fno-sanitize-recover=all -g -O1"


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to build the core; its name is that of its folder under .cache/cpp."""

    name: str
    options: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return project.CACHE / "cpp" / self.name

    def commands(self) -> list[list[str]]:
        """What configures and builds it; cmake and ninja are on PATH."""
        configure = ["cmake", "-S", str(_SOURCES), "-B", str(self.folder), "-G", "Ninja"]
        build = ["cmake", "--build", str(self.folder), "--parallel", str(os.cpu_count() or 1)]
        return [[*configure, *self.options], build]


_TESTS = "-DMONARCH_TESTS=ON"
_CLANG = "-DCMAKE_CXX_COMPILER=clang++"
TESTS = Variant("tests", (_TESTS, "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS=-Werror"))
SANITIZED = (
    Variant("asan", (_TESTS, _CLANG, f"{_SANITIZE} -fsanitize=address,undefined")),
    Variant("tsan", (_TESTS, _CLANG, f"{_SANITIZE} -fsanitize=thread")),
)
FUZZERS = Variant("fuzz", ("-DMONARCH_FUZZERS=ON", _CLANG, "-DCMAKE_CXX_FLAGS=-g -O1"))


def build(session: nox.Session, variant: Variant) -> None:
    session.install(*project.group("cpp"))
    for command in variant.commands():
        session.run(*command)


def test(session: nox.Session, variant: Variant) -> None:
    """Build `variant` and run its tests with ctest."""
    build(session, variant)
    session.run("ctest", "--test-dir", str(variant.folder), "--output-on-failure")


def fuzzers() -> list[Path]:
    """The libFuzzer programs that the build made: every executable named *_fuzz."""
    found = sorted(FUZZERS.folder.rglob("*_fuzz"))
    return [path for path in found if path.is_file() and os.access(path, os.X_OK)]
