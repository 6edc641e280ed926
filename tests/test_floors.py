"""The floors of the tree: what each part of it may import or include (CONTRIBUTING.md, Floors)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# A part of the C++ sources may include itself and the parts named here, nothing else of the tree.
_BASE = "runtime/core/base"
_WIRE = "runtime/core/wire"
_NET = "runtime/core/net"
_TOP = ("runtime/core/actor", "runtime/core/proc")
CPP_FLOORS: dict[str, tuple[str, ...]] = {
    _BASE: (),
    _WIRE: (_BASE,),
    _NET: (_BASE, _WIRE),
    "runtime/core/sim": (_BASE, _WIRE),
    **dict.fromkeys(_TOP, (_BASE, _WIRE, _NET)),
    "runtime/bindings": (_BASE, _WIRE, _NET, *_TOP, "native/include"),
    "native/include": (),
    "native/cuda": ("native/include",),
    "native/hip": ("native/include",),
}

# Floors of the Python package `monarch`, lowest first; parts of one floor do not see each other.
PYTHON_FLOORS: tuple[tuple[str, ...], ...] = (
    ("_build_info", "_distributions", "_failure", "_restart"),
    ("errors",),
    ("config", "_shape"),
    ("_core", "_preload"),
    ("_link",),
    ("_actor",),
    ("_proc",),
    ("_mesh",),
    ("_supervision",),
    ("_job", "_gpu", "_gpu_cuda", "_gpu_rocm"),
    ("_cli",),
)
# Above all floors: they re-export, or report on the whole.
PYTHON_TOP = {
    "",
    "__main__",
    "actor",
    "mesh",
    "supervision",
    "job",
    "spmd",
    "tools",
    "gpu",
    "testing",
    "doctor",
}

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_CPP_SUFFIXES = {".hpp", ".h", ".cpp", ".cu", ".cuh", ".hip"}


def cpp_violations(root: Path) -> list[str]:
    """Includes across the floors, and quoted includes that name no file of the tree."""
    files = [
        path
        for top in ("runtime/core", "runtime/bindings", "native")
        for path in sorted((root / top).rglob("*"))
        if path.suffix in _CPP_SUFFIXES
    ]
    names = [path.relative_to(root).as_posix() for path in files]
    found = []
    for path, name in zip(files, names, strict=True):
        part = _part(name)
        if part is None:
            found.append(f"{name}: lies in no floor")
            continue
        for raw in _INCLUDE.findall(path.read_bytes()):
            include = raw.decode()
            beside = (path.parent / include).resolve()
            if beside.is_relative_to(root) and beside.is_file():
                targets = {_part(beside.relative_to(root).as_posix())}
            else:
                targets = {_part(other) for other in names if other.endswith("/" + include)}
            if not targets:
                found.append(f'{name}: "{include}" names no file of the tree')
            elif not targets & {part, *CPP_FLOORS[part]}:
                found.append(f'{name}: {part} may not include "{include}"')
    return found


def _part(name: str) -> str | None:
    return next((part for part in CPP_FLOORS if name.startswith(part + "/")), None)


def imported(path: Path, package: str) -> set[str]:
    """Full names of the modules that a file imports, those inside functions included."""
    names = set()
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")
                above = above[: len(above) - node.level + 1]
                base = ".".join([*above, base]) if base else ".".join(above)
            names.add(base)
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return names


def monarch_violations(root: Path) -> list[str]:
    """Imports inside `monarch` that go up or across its floors, and parts without a floor."""
    package = root / "runtime/monarch"
    rank = {part: level for level, parts in enumerate(PYTHON_FLOORS) for part in parts}
    found = []
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        own = "" if parts[0] == "__init__" else parts[0]
        where = path.relative_to(root).as_posix()
        if own in PYTHON_TOP:
            continue
        if own not in rank:
            found.append(f"{where}: {own} has no floor")
            continue
        parent = ".".join(["monarch", *parts[:-1]])
        for name in sorted(imported(path, parent)):
            head, _, rest = name.partition(".")
            other = rest.partition(".")[0]
            if head != "monarch" or other == own:
                continue
            if other in PYTHON_TOP - {""} or rank.get(other, -1) >= rank[own]:
                found.append(f"{where}: {own} may not import {name}")
    return found


def foreign_violations(root: Path) -> list[str]:
    """`port` imports no `monarch`, of `monarch` only doctor imports `port`, `ci` neither."""
    found = []
    for top, banned in (
        ("port", {"monarch", "ci"}),
        ("runtime/monarch", {"port", "ci"}),
        ("ci", {"monarch", "port"}),
        ("noxfile.py", {"monarch", "port"}),
    ):
        start = root / top
        files = [start] if start.is_file() else sorted(start.rglob("*.py"))
        for path in files:
            where = path.relative_to(root).as_posix()
            if top == "runtime/monarch" and "doctor" in where:
                continue
            package = ".".join(path.relative_to(start).parent.parts)
            heads = {name.partition(".")[0] for name in imported(path, f"{top}.{package}")}
            found += [f"{where}: may not import {name}" for name in sorted(heads & banned)]
    return found


# Where the tests of a part lie; a folder of C++ has them beside the code.
MIRROR = {
    "ci": "tests/ci",
    "docs": "tests/docs",
    "examples": "tests/examples",
    "native": "tests/native",
    "runtime/bindings": "tests/core",
    "runtime/monarch": "tests/monarch",
    "runtime/monarch/gpu": "tests/native",
}


def mirror_violations(root: Path) -> list[str]:
    """Parts of the tree that have no tests in the place that mirrors them."""
    packages = [path.parent for path in sorted((root / "port").glob("*/__init__.py"))]
    places = {f"{p.relative_to(root)}": f"tests/{p.relative_to(root)}" for p in packages}
    found = [
        f"{part}: no test in {place}"
        for part, place in {**places, **MIRROR}.items()
        if (root / part).is_dir() and not any((root / place).rglob("test_*.py"))
    ]
    folders = {path.parent for path in (root / "runtime/core").rglob("*.cpp")}
    return found + [
        f"{folder.relative_to(root)}: no *_test.cpp"
        for folder in sorted(folders)
        if folder.name != "core" and not any(folder.glob("*_test.cpp"))
    ]


def test_cpp_includes_keep_the_floors():
    assert cpp_violations(ROOT) == []


def test_monarch_imports_keep_the_floors():
    assert monarch_violations(ROOT) == []


def test_port_monarch_and_ci_keep_apart():
    assert foreign_violations(ROOT) == []


def test_every_part_has_its_tests_where_they_are_looked_for():
    assert mirror_violations(ROOT) == []


def test_a_part_without_tests_is_found(tmp_path):
    tree = {"port/new/__init__.py": "", "runtime/core/net/a.cpp": "", "ci/a.py": ""}
    assert len(mirror_violations(_tree(tmp_path, tree))) == 3


def _tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("files", "blamed"),
    [
        (
            {"runtime/core/base/a.hpp": '#include "wire/f.hpp"\n', "runtime/core/wire/f.hpp": ""},
            "runtime/core/base/a.hpp: runtime/core/base may not include",
        ),
        (
            {"native/cuda/k.cu": '#include "base/a.hpp"\n', "runtime/core/base/a.hpp": ""},
            "native/cuda/k.cu: native/cuda may not include",
        ),
        ({"native/cuda/k.cu": '#  include "gone.hpp"\n'}, "names no file of the tree"),
        ({"native/extra/x.cpp": ""}, "lies in no floor"),
    ],
)
def test_cpp_check_finds_a_breach(tmp_path, files, blamed):
    (found,) = cpp_violations(_tree(tmp_path, files))
    assert blamed in found


@pytest.mark.parametrize(
    ("name", "text", "blamed"),
    [
        ("errors.py", "from monarch import _core\n", "errors may not import monarch._core"),
        ("_mesh/a.py", "from .._supervision import x\n", "_mesh may not import"),
        (
            "_core/a.py",
            "def f():\n    import monarch.actor\n",
            "_core may not import monarch.actor",
        ),
        ("other.py", "", "other has no floor"),
    ],
)
def test_monarch_check_finds_a_breach(tmp_path, name, text, blamed):
    found = monarch_violations(_tree(tmp_path, {f"runtime/monarch/{name}": text}))
    assert any(blamed in line for line in found), found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("port/verify/a.py", "import monarch.errors\n"),
        ("runtime/monarch/gpu/__init__.py", "from port import platform\n"),
        ("ci/a.py", "import port\n"),
    ],
)
def test_foreign_check_finds_a_breach(tmp_path, name, text):
    assert len(foreign_violations(_tree(tmp_path, {name: text}))) == 1


def test_doctor_alone_may_import_port(tmp_path):
    tree = _tree(tmp_path, {"runtime/monarch/doctor.py": "from port import platform\n"})
    assert foreign_violations(tree) == []
