"""The table of one run as text."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TOOLS = ("port.hipify", "torch", "hipify-perl", "hipify-clang")


@dataclass(slots=True)
class Column:
    """One tool on one project; `names` are those of the files it was given, where not all."""

    residue: int
    unreported: int
    undeclared: int
    compiled: int
    seconds: float
    status: int
    second_run: int | None = None
    names: int | None = None
    errors: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Row:
    """One project: its size, and a column a tool."""

    project: str
    files: int
    names: int
    units: int
    candidates: int
    columns: dict[str, Column] = field(default_factory=dict)


def load(path: Path) -> dict[str, Row]:
    """The rows of a JSON file of an earlier run, by project."""
    rows = json.loads(path.read_text())
    for row in rows:
        row["columns"] = {tool: Column(**held) for tool, held in row["columns"].items()}
    return {row["project"]: Row(**row) for row in rows}


def joined(earlier: Row | None, row: Row) -> Row:
    """`row` with the columns that an earlier run of the same project has for other tools."""
    if earlier is not None:
        row.columns = {**earlier.columns, **row.columns}
        row.units = row.units or earlier.units
    return row


def line(row: Row) -> str:
    """One project in one line."""
    parts = [f"{row.project}: {row.names} names, {row.units}/{row.candidates} units"]
    parts += [f"{tool} {_cell(column, row.units)}" for tool, column in row.columns.items()]
    return " | ".join(parts)


def table(rows: Sequence[Row]) -> str:
    """Markdown: a row for each project and their sum."""
    used = [tool for tool in TOOLS if any(tool in row.columns for row in rows)]
    lines = [
        "| project (files / units) | names | " + " | ".join(used) + " |",
        "|---|---|" + "---|" * len(used),
    ]
    for row in rows:
        cells = [_cell(row.columns.get(tool), row.units) for tool in used]
        head = f"{row.project} ({row.files} / {row.units})"
        lines.append(f"| {head} | {row.names} | " + " | ".join(cells) + " |")
    cells = [_sum(rows, tool) for tool in used]
    lines.append(
        f"| **all ({sum(r.files for r in rows)} / {sum(r.units for r in rows)})** | "
        f"{sum(r.names for r in rows)} | " + " | ".join(cells) + " |"
    )
    return "\n".join(lines) + "\n"


def _cell(column: Column | None, units: int) -> str:
    if column is None:
        return "-"
    again = "" if column.second_run is None else f" · {column.second_run}"
    given = "" if column.names is None else f" of {column.names}"
    return (
        f"{column.residue}{given} · {column.unreported} · {column.undeclared} · "
        f"{column.compiled}/{units}{again} · {column.seconds:.1f} s"
    )


def _sum(rows: Sequence[Row], tool: str) -> str:
    chosen = [(row, row.columns[tool]) for row in rows if tool in row.columns]
    names = sum(row.names if column.names is None else column.names for row, column in chosen)
    units = sum(row.units for row, _ in chosen)
    residue = sum(column.residue for _, column in chosen)
    compiled = sum(column.compiled for _, column in chosen)
    share = f"{100 * residue / names:.1f} %" if names else "-"
    rate = f"{100 * compiled / units:.0f} %" if units else "-"
    return (
        f"**{residue} ({share}) · {sum(c.unreported for _, c in chosen)} · "
        f"{sum(c.undeclared for _, c in chosen)} · {compiled}/{units} ({rate}) · "
        f"{sum(c.seconds for _, c in chosen):.0f} s**"
    )
