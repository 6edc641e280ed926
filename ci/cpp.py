"""Sessions cpp, sanitize, fuzz, sim, arm64 and macos: the C++ core, built apart from Python."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ci import project

if TYPE_CHECKING:
    from pathlib import Path

    import nox

_SOURCES = project.ROOT / "runtime/core"
ZIG = "ziglang==0.17.1"
_SANITIZE = "-DCMAKE_CXX_FLAGS=-fno-omit-frame-pointer -fno-sanitize-recover=all -g -O1"


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to build the core; its name is that of its folder under .cache/cpp."""

    name: str
    options: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return project.CACHE / "cpp" / self.name

    def commands(self, *targets: str) -> list[list[str]]:
        """What configures and builds it, or of it `targets`; cmake and ninja are on PATH."""
        configure = ["cmake", "-S", str(_SOURCES), "-B", str(self.folder), "-G", "Ninja"]
        build = ["cmake", "--build", str(self.folder), "--parallel", str(os.cpu_count() or 1)]
        wanted = ["--target", *targets] if targets else []
        return [[*configure, *self.options], [*build, *wanted]]


_TESTS = "-DMONARCH_TESTS=ON"
_CLANG = "-DCMAKE_CXX_COMPILER=clang++"
TESTS = Variant("tests", (_TESTS, "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS=-Werror"))
SANITIZED = (
    Variant("asan", (_TESTS, _CLANG, f"{_SANITIZE} -fsanitize=address,undefined")),
    Variant("tsan", (_TESTS, _CLANG, f"{_SANITIZE} -fsanitize=thread")),
)
_ARM64_SYSTEM = "/usr/aarch64-linux-gnu"
_ARM64_INCLUDE = project.CACHE / "cpp/arm64-include"
ARM64 = Variant(
    "arm64",
    (
        _TESTS,
        "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_CXX_FLAGS=-Werror",
        "-DCMAKE_SYSTEM_NAME=Linux",
        "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
        "-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++",
        f"-DDOCTEST_INCLUDE={_ARM64_INCLUDE}",
    ),
)
CALL_PATH = Variant("calls", ("-DMONARCH_CALL_PATH=ON", "-DCMAKE_BUILD_TYPE=Release"))
SIMULATION = Variant(
    "sim",
    ("-DMONARCH_SIMULATION=ON", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS=-Werror"),
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


def simulate(session: nox.Session) -> None:
    """Run the simulator with the arguments of the session: a thousand seeds without any."""
    session.install(*project.group("cpp"))
    for command in SIMULATION.commands("monarch_sim"):
        session.run(*command)
    session.run(str(SIMULATION.folder / "monarch_sim"), *session.posargs, external=True)


def test_arm64(session: nox.Session) -> None:
    """Build for Linux on arm64 and run its tests in the user-mode emulator."""
    # The headers of this machine's own C library must stay out of the way: doctest's alone.
    _ARM64_INCLUDE.mkdir(parents=True, exist_ok=True)
    link = _ARM64_INCLUDE / "doctest"
    link.unlink(missing_ok=True)
    link.symlink_to("/usr/include/doctest")
    build(session, ARM64)
    # The emulator does not carry out every prctl. What bent machines do, which takes it minutes, is
    # a test of the simulator's checker.
    skipped = "--test-case-exclude=orphans of a subreaper*,a machine that is bent*"
    # TLS needs an OpenSSL for that machine, which Debian has no cross package of.
    apart = "--source-file-exclude=*tls_test.cpp"
    program = str(ARM64.folder / "core_tests")
    session.run("qemu-aarch64", "-L", _ARM64_SYSTEM, program, skipped, apart, external=True)


def macos_command(python: str, source: Path) -> list[str]:
    """What compiles one file of the core for macOS, with the headers that zig brings."""
    warnings = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
    target = ["-target", "aarch64-macos", "-std=c++20", "-I", str(_SOURCES)]
    output = project.CACHE / "cpp/macos" / source.relative_to(_SOURCES).with_suffix(".o")
    output.parent.mkdir(parents=True, exist_ok=True)
    zig = [python, "-m", "ziglang", "c++", *target, *warnings]
    return [*zig, "-c", str(source), "-o", str(output)]


def sources() -> list[Path]:
    """Every file of the core that ends up in the module."""
    apart = ("_test.cpp", "_world.cpp", "_fuzz.cpp", "test_main.cpp", "call_path.cpp")
    return [
        path
        for path in sorted(_SOURCES.rglob("*.cpp"))
        if not path.name.endswith(apart) and path.parent.name != "sim"
    ]


def compile_macos(session: nox.Session) -> None:
    """Compile the core for macOS; nothing is linked or run."""
    session.install(ZIG)
    for source in sources():
        session.run(*macos_command("python", source), silent=True)


def fuzzers() -> list[Path]:
    """The libFuzzer programs that the build made: every executable named *_fuzz."""
    found = sorted(FUZZERS.folder.rglob("*_fuzz"))
    return [path for path in found if path.is_file() and os.access(path, os.X_OK)]
