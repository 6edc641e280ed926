"""What the command line and `port.hipify.convert` share: one request, one outcome."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from port.errors import InputError
from port.hipify import cache, engine, manifest, output, overrides
from port.hipify.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from port.hipify.engine import Conversion
    from port.hipify.options import Options
    from port.hipify.output import Changes

_GITIGNORE = b"cache.json\npending.json\nstage-*\n"


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

    Raises:
        InputError: a wrong place, release, map file or folder.
        EnvironmentMissingError: torch's tables are asked for, and there are none.
        LimitError: the disk is full.

    """
    output.check_places(source, out)
    for folder in options.include_dirs:
        if not Path(folder).is_dir():
            raise InputError(f"-I {folder}: there is no such folder; wanted one that holds headers")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is no folder; wanted a folder for the converted tree")
    if options.headers:
        from port.hipify import installed  # noqa: PLC0415 - few conversions ask for it

        options = replace(options, rocm=installed.release_of(Path(options.headers)))
    known = cache.load(_read(out / manifest.FOLDER / cache.FILE))
    conversion = engine.convert_tree(source, options, overrides.chosen(options), out, known)
    changes = output.plan(out, conversion.outputs)
    if check:
        changes = replace(changes, findings=(*changes.findings, *_stale(out, changes)))
    else:
        refused = {finding.file for finding in changes.findings}
        ours = {path: made for path, made in conversion.outputs.items() if path not in refused}
        records = _records(source, conversion, ours, options)
        if changes.any or not output.is_settled(out, records):
            done = output.write(out, ours, records)
            changes = replace(done, findings=changes.findings)
    if changes.findings:
        found = tuple(sorted((*conversion.findings, *changes.findings)))
        conversion = replace(conversion, findings=found)
    return Outcome(source, conversion, changes, check)


def _stale(out: Path, changes: Changes) -> Iterator[Finding]:
    for state, paths in (("written", changes.written), ("removed", changes.pruned)):
        for path in paths:
            message = f"{out / path} is not what this conversion makes: it would be {state}"
            remedy = "convert without --check; edits belong into the source"
            yield Finding(
                path,
                1,
                1,
                "stale-output",
                "error",
                path,
                message,
                remedy,
            )


def _records(
    source: Path,
    conversion: Conversion,
    outputs: dict[str, tuple[bytes, int]],
    options: Options,
) -> dict[str, bytes]:
    """The files of the record folder.

    A tree that was converted before comes out as it is, and so does its record: it still says from
    which sources the files were made.
    """
    earlier = source / manifest.FOLDER
    names = (manifest.FILE, cache.FILE, ".gitignore")
    if (earlier / manifest.FILE).is_file() and conversion.is_identity:
        found = {name: _read(earlier / name) for name in names}
        return {name: data for name, data in found.items() if data is not None}
    made = manifest.build(options, conversion.sources, outputs)
    text = json.dumps(made, indent=1, sort_keys=True) + "\n"
    return dict(zip(names, (text.encode(), conversion.cache.dump(), _GITIGNORE), strict=True))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
