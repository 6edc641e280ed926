"""The name tables of an installed torch, on request: read from its source file, never imported."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

from port.errors import EnvironmentMissingError, InputError
from port.hipify.mapping import Mapping

_TABLES = Path("utils", "hipify", "cuda_to_hip_mappings.py")
# Names of CUDA's interface; the other tables hold torch's own names and file paths.
_WANTED = frozenset({"CUDA_TYPE_NAME_MAP", "CUDA_IDENTIFIER_MAP", "CUDA_SPECIAL_MAP"})


def additions(release: str) -> dict[str, str]:
    """What the installed torch's tables add to the map of `release`.

    Only names that the map has nothing for, and only targets that the release declares.

    Raises:
        PortError: as `load` does.

    """
    mapping = Mapping(release)
    return {
        name: target
        for name, target in load().items()
        if target in mapping.hip
        and ((entry := mapping.lookup(name)) is None or entry.how == "none")
    }


def load() -> dict[str, str]:
    """CUDA name to HIP name, as the installed torch has it.

    Raises:
        EnvironmentMissingError: no torch with such tables is installed.
        InputError: its file cannot be read.

    """
    found = importlib.util.find_spec("torch")
    folders = list(found.submodule_search_locations or ()) if found is not None else []
    path = next((p for each in folders if (p := Path(each) / _TABLES).is_file()), None)
    if path is None:
        where = f"{folders[0]} has no {_TABLES}" if folders else "no torch is installed"
        raise EnvironmentMissingError(
            f"--torch-map: {where}; install a torch with its hipify tables, or leave the option out"
        )
    return read(path)


def read(path: Path) -> dict[str, str]:
    """The entries of one file of such tables; entries that are no pair of names are passed over.

    Raises:
        InputError: it cannot be read as Python.

    """
    try:
        module = ast.parse(path.read_text("utf-8"), str(path))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = str(error) or "nested too deeply"
        raise InputError(f"{path}: torch's tables cannot be read: {reason}") from None
    entries: dict[str, str] = {}
    for statement in module.body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            continue
        if statement.targets[0].id in _WANTED:
            entries.update(_pairs(statement.value))
    return entries


def _pairs(value: ast.expr) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in ast.walk(value):
        if isinstance(node, ast.Tuple) and len(node.elts) == 2:
            pair = [each.value for each in node.elts if isinstance(each, ast.Constant)]
        elif isinstance(node, ast.Dict):
            found |= _literals(node)
            continue
        else:
            continue
        if len(pair) == 2 and all(isinstance(each, str) for each in pair):
            found[str(pair[0])] = str(pair[1])
    return found


def _literals(node: ast.Dict) -> dict[str, str]:
    """String pairs of a dictionary; a value may be a tuple whose first member is the name."""
    found: dict[str, str] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        name = value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value
        if isinstance(key, ast.Constant) and isinstance(name, ast.Constant):
            found[str(key.value)] = str(name.value)
    return found
