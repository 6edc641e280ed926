"""The user's own map: `--map FILE`, JSON or TOML, names and header paths taken literally."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from port.errors import InputError

if TYPE_CHECKING:
    from port.hipify.options import Options


def chosen(options: Options) -> dict[str, str]:
    """The names that go before the map: the user's own, and torch's where they are asked for.

    Raises:
        PortError: as `load` and `torch_map.load` do.

    """
    names: dict[str, str] = {}
    if options.torch_map:
        from port.hipify import torch_map  # noqa: PLC0415 - loads the tables, which few need here

        names |= torch_map.additions(options.rocm)
    if options.map_file:
        names |= load(Path(options.map_file))
    return names


def load(path: Path) -> dict[str, str]:
    """The entries of a map file: one table of CUDA name or header to HIP name or header.

    A TOML file may group them in tables; the table's name does not matter.

    Raises:
        InputError: names file, line and key where it cannot be read or holds more than strings.

    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{path}: the map file cannot be read: {reason}") from None
    is_toml = path.suffix.lower() == ".toml"
    try:
        data = tomllib.loads(text) if is_toml else json.loads(text, object_pairs_hook=_once)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: broken TOML: {error}") from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}:{error.lineno}:{error.colno}: broken JSON: {error.msg}; wanted one object of "
            'names, {"cudaFoo": "hipFoo"}'
        ) from None
    except KeyError as error:
        key = error.args[0]
        raise InputError(f"{path}: key {key!r} is given twice; wanted it once") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply; wanted one object of names") from None
    if not isinstance(data, dict):
        raise InputError(f"{path}:1: wanted one object of names, found {type(data).__name__}")
    entries: dict[str, str] = {}
    for key, value in data.items():
        _take(entries, path, text, key, value, nested=is_toml)
    return entries


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys differ.

    Raises:
        KeyError: the first key that is there twice.

    """
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise KeyError(key)
        found[key] = value
    return found


def _take(
    entries: dict[str, str], path: Path, text: str, key: str, value: Any, *, nested: bool
) -> None:
    if nested and isinstance(value, dict):
        for inner, each in value.items():
            _take(entries, path, text, inner, each, nested=False)
        return
    line = next((n for n, row in enumerate(text.splitlines(), 1) if key in row), 1)
    if not isinstance(value, str) or not value:
        found = json.dumps(value, default=str)
        raise InputError(f"{path}:{line}: key {key!r}: wanted a name in quotes, found {found}")
    if not key or not (key + value).isprintable():
        raise InputError(f"{path}:{line}: key {key!r}: wanted a name or header in plain characters")
    entries[key] = value
