"""Build one table from several readings, and write it as one compressed text file."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from port.hipify.tables_gen.extract import Record

# Letters of the kinds in the file; `port.hipify.tables` reads them back.
KIND_LETTERS = {
    "function": "f",
    "type": "t",
    "struct": "s",
    "enum": "e",
    "enumerator": "c",
    "macro": "m",
    "variable": "v",
}

_SEPARATORS = re.compile(r"[\t\n]")


def merge(readings: Iterable[Mapping[str, Record]]) -> dict[str, Record]:
    """One record a name, newest reading first; other parameter lists go to `older`."""
    merged: dict[str, Record] = {}
    for records in readings:
        for name, record in records.items():
            known = merged.get(name)
            if known is None:
                merged[name] = record
            elif known.kind == record.kind == "function" and known.header == record.header:
                merged[name] = _with_older(known, record)
            elif known.kind == "macro" and record.kind != "macro":
                merged[name] = record
    return merged


def _with_older(known: Record, record: Record) -> Record:
    older = list(known.older)
    for parameters in (record.parameters, *record.older):
        if parameters is not None and parameters != known.parameters and parameters not in older:
            older.append(parameters)
    return replace(known, older=tuple(older))


def write(
    path: Path, records: Mapping[str, Record], meta: Mapping[str, object], headers: list[str]
) -> int:
    """Write the table to `path`, the same bytes for the same content; return their number.

    First line: JSON (`headers` and the sources). Then a line a name: name, letter of the kind,
    number of the header, value, result, parameters (`;` between), older parameter lists (`|`).
    """
    known = {header: number for number, header in enumerate(headers)}
    for record in records.values():
        known.setdefault(record.header, len(known))
    first = {**meta, "headers": list(known), "listed": len(headers)}
    lines = [json.dumps(first, sort_keys=True)]
    lines += [_line(records[name], known) for name in sorted(records)]
    data = gzip.compress("\n".join(lines).encode(), 9, mtime=0)
    path.write_bytes(data)
    return len(data)


def _line(record: Record, headers: Mapping[str, int]) -> str:
    fields = [
        record.name,
        KIND_LETTERS[record.kind],
        str(headers[record.header]),
        _SEPARATORS.sub(" ", record.value),
        record.result,
        "-" if record.parameters is None else ";".join(record.parameters),
        "|".join(";".join(each) for each in record.older),
    ]
    return "\t".join(fields).rstrip("\t")
