"""One HIP runtime in the process: the table of load orders, with stand-ins in torch's layout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.monarch import hip_copies
from tests.monarch.hand_wheels import RUNTIME

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
import ctypes, json, sys
from monarch import _preload

def bare():
    load(sys.argv[1])

def ours():
    with _preload.one_hip_runtime(sys.argv[2], sys.argv[3]):
        load(sys.argv[1])

def load(path):
    try:
        ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(str(error)) from None

def torch():
    try:
        __import__("torch")
    except OSError as error:
        raise ImportError(str(error)) from None

answer = {"error": None, "kind": None}
try:
    for step in sys.argv[4].split(","):
        {"bare": bare, "ours": ours, "torch": torch}[step]()
except ImportError as error:
    answer = {"error": str(error), "kind": type(error).__name__}
print(json.dumps({**answer, "mapped": sorted(str(path) for path in _preload.mapped())}))
"""


@dataclass(frozen=True, slots=True)
class Layout:
    root: Path

    def run(
        self,
        order: str,
        *,
        major: int = 7,
        release: str = "7.2",
        packages: tuple[str, ...] = ("site",),
        system: tuple[str, ...] = (),
        **environ: str,
    ) -> dict[str, object]:
        """A fresh process that loads in `order`; `system` folders are in LD_LIBRARY_PATH."""
        path = [str(RUNTIME), *(str(self.root / name) for name in packages)]
        module = self.root / f"ours{major}.so"
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, module, f"libamdhip64.so.{major}", release, order],
            capture_output=True,
            text=True,
            check=True,
            env={
                "PATH": os.environ["PATH"],
                # -c would else look for packages in the folder that the tests run in
                "PYTHONSAFEPATH": "1",
                "PYTHONPATH": ":".join(path + [p for p in sys.path if "site-packages" in p]),
                "LD_LIBRARY_PATH": ":".join(str(self.root / name) for name in system),
                **environ,
            },
        )
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    root = tmp_path_factory.mktemp("hip")
    for major in (6, 7):
        hip_copies.module(root, major)
        hip_copies.hip(root / f"system/libamdhip64.so.{major}", major)
        hip_copies.hip(root / f"opt/rocm{major}/lib/libamdhip64.so.{major}", major)
    hip_copies.torch(root / "site")
    for name in ("sdk", "empty"):
        (root / name).mkdir()
    hip_copies.hip(root / "sdk/_rocm_sdk_core/lib/libamdhip64.so.7", 7)
    (root / "sdk/_rocm_sdk_core/__init__.py").touch()
    return Layout(root)


SYSTEM = pytest.mark.parametrize("system", [(), ("system",)], ids=["alone", "with-system-copy"])


@SYSTEM
def test_the_fault_without_the_preloader(layout, system):
    """The control: what the preloader is for does happen without it."""
    answer = layout.run("bare,torch", system=system)
    if system:
        assert len(answer["mapped"]) == 2
    else:
        assert "libamdhip64.so.7: cannot open" in answer["error"]
    swapped = layout.run("torch,bare", system=system)
    assert (swapped["error"], len(swapped["mapped"])) == (None, 1)


@SYSTEM
@pytest.mark.parametrize("order", ["ours,torch", "torch,ours", "ours,torch,ours"])
def test_torchs_copy_is_the_only_one_in_any_order(layout, order, system):
    answer = layout.run(order, system=system)
    assert answer["error"] is None
    assert answer["mapped"] == [str(layout.root / "site/torch/lib/libamdhip64.so")]


@pytest.mark.report("56")
@SYSTEM
@pytest.mark.parametrize("order", ["ours,torch", "torch,ours"])
def test_another_major_is_refused_and_both_are_named(layout, order, system):
    answer = layout.run(order, major=6, release="6.4", system=system)
    assert answer["kind"] == "RuntimeLibraryError"
    assert "built for ROCm 6.4 (libamdhip64.so.6)" in answer["error"]
    assert "libamdhip64.so.7, from" in answer["error"]
    if order == "ours,torch":
        assert "ROCm 7.0" in answer["error"], "torch's version.py tells its release"
        assert answer["mapped"] == [], "it is refused before anything is loaded"


@pytest.mark.report("56")
def test_the_system_may_be_newer_than_torch_and_torchs_copy_is_taken(layout):
    answer = layout.run("ours", release="7.2", system=("system",))
    assert answer["mapped"] == [str(layout.root / "site/torch/lib/libamdhip64.so")]


def test_without_torch_amds_python_packages_are_taken(layout):
    answer = layout.run("ours", packages=("sdk",), system=("system",))
    assert answer["error"] is None
    assert answer["mapped"] == [str(layout.root / "sdk/_rocm_sdk_core/lib/libamdhip64.so.7")]


def test_torch_goes_before_amds_python_packages(layout):
    answer = layout.run("ours", packages=("sdk", "site"))
    assert answer["mapped"] == [str(layout.root / "site/torch/lib/libamdhip64.so")]


@pytest.mark.parametrize("major", [6, 7])
def test_with_nothing_else_the_loader_finds_its_own(layout, major):
    answer = layout.run("ours", major=major, packages=(), system=("system",))
    assert answer["error"] is None
    assert answer["mapped"] == [str(layout.root / f"system/libamdhip64.so.{major}")]


def test_no_copy_at_all_says_what_was_searched_and_what_to_install(layout):
    answer = layout.run("ours", packages=(), system=("empty",))
    assert answer["kind"] == "RuntimeLibraryError"
    for part in (
        "libamdhip64.so.7 was not found",
        "built for ROCm 7.2",
        "torch/lib",
        f"LD_LIBRARY_PATH={layout.root / 'empty'}",
        "Install ROCm 7",
    ):
        assert part in answer["error"]


def test_a_copy_where_the_loader_does_not_look_is_named_with_the_remedy(layout):
    home = layout.root / "opt/rocm7"
    answer = layout.run("ours", packages=(), ROCM_PATH=str(home))
    assert f"Add {home / 'lib'} to LD_LIBRARY_PATH" in answer["error"]


def test_two_copies_in_the_process_already_are_an_error(layout):
    answer = layout.run("bare,torch,ours", system=("system",))
    assert answer["kind"] == "RuntimeLibraryError"
    assert "holds 2 HIP runtimes before the import" in answer["error"]
    assert str(layout.root / "site/torch/lib/libamdhip64.so") in answer["error"]


def test_a_second_copy_that_the_import_brings_is_an_error(layout, tmp_path):
    # As a repair leaves it that grafts a copy: private, under a name of its own.
    soname = "libamdhip64.so.7.private"
    private = hip_copies.hip(tmp_path / soname, 7, soname)
    module = hip_copies.shared_library(
        tmp_path / "ours7.so", hip_copies.USER, str(private), f"-Wl,-rpath,{tmp_path}"
    )
    (layout.root / "grafted").mkdir()
    moved = Layout(layout.root / "grafted")
    module.rename(moved.root / "ours7.so")
    answer = moved.run("ours", packages=("../site",))
    assert answer["kind"] == "RuntimeLibraryError"
    assert "holds 2 HIP runtimes now" in answer["error"]


def test_a_module_that_does_not_fit_its_runtime_names_both(layout):
    needy = Layout(layout.root / "needy")
    hip_copies.shared_library(
        needy.root / "ours7.so",
        "extern int hipOnlyInLater(void); int version(void) { return hipOnlyInLater(); }",
        "-Wl,-z,now",
        str(layout.root / "link/libamdhip64.so.7"),
    )
    answer = needy.run("ours", packages=("../site",))
    assert "built for ROCm 7.2 (libamdhip64.so.7) does not load with" in answer["error"]
    assert "ROCm 7.0" in answer["error"]
    assert "hipOnlyInLater" in answer["error"]


def test_a_broken_copy_is_named(layout, tmp_path):
    lib = tmp_path / "site/torch/lib"
    lib.mkdir(parents=True)
    (lib.parent / "__init__.py").touch()
    (lib / "libamdhip64.so").write_bytes(b"not a library")
    broken = Layout(tmp_path)
    answer = broken.run("ours")
    assert str(lib / "libamdhip64.so") in answer["error"]
