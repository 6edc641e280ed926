"""What the command line and `port.hipify.convert` share: one request, one outcome."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from port.errors import InputError
from port.hipify import engine, output, overrides
from port.hipify.context import VERSION, Options

if TYPE_CHECKING:
    from port.hipify.engine import Conversion
    from port.hipify.output import Changes


@dataclass(frozen=True, slots=True)
class Outcome:
    """A conversion and what it changed, or with `check` would change, in the output folder."""

    source: Path
    conversion: Conversion
    changes: Changes
    checked: bool

    @property
    def ok(self) -> bool:
        """Whether nothing is left, and for a check whether nothing differs."""
        return self.conversion.ok and not (self.checked and self.changes.any)


def convert(source: Path, out: Path, options: Options, *, check: bool = False) -> Outcome:
    """Convert `source` into `out`.

    Raises InputError for a wrong place, release, map file or folder, LimitError for a full disk.
    """
    output.check_places(source, out)
    for folder in options.include_dirs:
        if not Path(folder).is_dir():
            raise InputError(f"-I {folder}: there is no such folder; wanted one that holds headers")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is no folder; wanted a folder for the converted tree")
    own_names = overrides.load(Path(options.map_file)) if options.map_file else {}
    conversion = engine.convert_tree(source, options, own_names)
    if check:
        changes = output.plan(out, conversion.outputs)
    else:
        changes = output.write(out, conversion.outputs, manifest_of(conversion, options))
    if changes.findings:
        found = tuple(sorted((*conversion.findings, *changes.findings)))
        conversion = replace(conversion, findings=found)
    return Outcome(source, conversion, changes, check)


def manifest_of(conversion: Conversion, options: Options) -> dict[str, Any]:
    """The record of a conversion: hashes of each source and output."""
    return {
        "schema": 1,
        "tool": f"port.hipify {VERSION}",
        "release": options.rocm,
        "files": {
            path: {"source": conversion.sources.get(path), "output": output.digest(data)}
            for path, (data, _) in conversion.outputs.items()
        },
    }
