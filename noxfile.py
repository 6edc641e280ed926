"""Sessions: what each runs is in `ci/`. `./ci/nox -l` lists them."""

from __future__ import annotations

import sys
from pathlib import Path

import nox

sys.path.insert(0, str(Path(__file__).parent))

from ci import bench as benchmarks
from ci import call_path, checks, containers, gpu, packages, suite, wheels
from ci import cpp as core
from ci import fuzz as fuzzing

nox.needs_version = ">=2026.4"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests"]


@nox.session
def lint(session: nox.Session) -> None:
    """Formatting, lint and spelling of all sources; the workflow files."""
    packages.ensure("lint")
    checks.lint(session)


@nox.session
def types(session: nox.Session) -> None:
    """Static types of all Python packages, strictly."""
    checks.types(session)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests that need no GPU; arguments after -- go to pytest."""
    packages.ensure("tests")
    suite.tests(session)


@nox.session
def cpp(session: nox.Session) -> None:
    """The C++ tests of the core alone."""
    packages.ensure("cpp")
    core.test(session, core.TESTS)


@nox.session
def sanitize(session: nox.Session) -> None:
    """The C++ tests under address, undefined-behaviour and thread sanitizers."""
    packages.ensure("sanitize")
    for variant in core.SANITIZED:
        core.test(session, variant)


@nox.session
def arm64(session: nox.Session) -> None:
    """The C++ tests, cross-built for Linux on arm64, in the user-mode emulator."""
    packages.ensure("arm64")
    core.test_arm64(session)


@nox.session
def macos(session: nox.Session) -> None:
    """The core, compiled for macOS by zig; it is not run."""
    core.compile_macos(session)


@nox.session
def calls(session: nox.Session) -> None:
    """Instructions of a call, counted; more than agreed fails. -- --update writes the figures."""
    packages.ensure("calls")
    call_path.check(session)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Fuzzers of every parser; -- --seconds N is the time for all of them."""
    packages.ensure("fuzz")
    fuzzing.fuzz(session)


@nox.session
def sim(session: nox.Session) -> None:
    """A simulated cluster under faults: a thousand seeds, or -- --seed N --trace for one."""
    packages.ensure("cpp")
    core.simulate(session)


@nox.session
def elastic(session: nox.Session) -> None:
    """What needs torch: training that goes on when ranks are lost, tensors in messages."""
    packages.ensure("elastic")
    suite.elastic(session)


@nox.session
def skypilot(session: nox.Session) -> None:
    """Tasks and clusters of SkyPilot itself, whose package is too big for the session tests."""
    packages.ensure("skypilot")
    suite.skypilot(session)


@nox.session
def bench(session: nox.Session) -> None:
    """Benchmarks; -- NAME… --quick picks some and shortens them."""
    packages.ensure("bench")
    benchmarks.bench(session)


@nox.session(name="build-cpu")
def build_cpu(session: nox.Session) -> None:
    """The monarch-cpu wheel: built, repaired, verified, installed, run."""
    packages.ensure("build")
    wheels.build(session, "cpu")


@nox.session(name="build-cuda")
def build_cuda(session: nox.Session) -> None:
    """The monarch-cuda wheel, with the installed CUDA or PyPI's."""
    packages.ensure("build")
    wheels.build(session, "cuda")


@nox.session(name="build-rocm")
def build_rocm(session: nox.Session) -> None:
    """The monarch-rocm wheel, with the ROCm found or Debian's; -- --rocm 6.4 picks one."""
    packages.ensure("build")
    wheels.build(session, "rocm")


@nox.session
def hipify(session: nox.Session) -> None:
    """Regenerate native/hip from native/cuda."""
    wheels.hipify(session)


@nox.session
def verify(session: nox.Session) -> None:
    """Verify the wheels in dist, or those named after --, and that native/hip is fresh."""
    wheels.verify(session)


@nox.session(name="wheel-test")
def wheel_test(session: nox.Session) -> None:
    """Install what is in dist by name into clean environments, and run it."""
    wheels.wheel_test(session)


@nox.session(name="gpu-tests")
def gpu_tests(session: nox.Session) -> None:
    """Device tests on the GPUs found; none is a skip, unless -- --require nvidia or amd."""
    packages.ensure("gpu-tests")
    gpu.gpu_tests(session)


@nox.session
def cibuildwheel(session: nox.Session) -> None:
    """A ROCm wheel by cibuildwheel, in a container image made here."""
    packages.ensure("cibuildwheel")
    containers.cibuildwheel(session)
