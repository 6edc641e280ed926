# /// script
# dependencies = ["cmake==4.4.5", "ninja==1.13.2", "nox==2026.10.20"]
# ///
"""Casts to up to 100,000 processes on 12,500 hosts, simulated.

    ./ci/nox -s bench -- scale [--quick] [--write]

Builds the simulator (docs/runtime/simulation.md), runs one cast with its answers for each size and
fan-out, and prints a table. `--write` puts it into docs/measurements/scale.md. Times are virtual:
they do not depend on the machine that it runs on.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path
from typing import Any

from ci import cpp

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/measurements/scale.md"
SIZES = (100, 1000, 10_000, 100_000)
FAN_OUTS = (4, 8, 16, 32, 64)
USUAL = 16
STAR = 1_000_000
HEAD = (
    "| processes | hosts | fan-out | depth | all have it | all answers | client: bytes, messages "
    "| agent: bytes, most (mean) | agent: messages, most (mean) |\n|"
) + "---:|" * 9


def build() -> Path:
    """Build the simulator; its path."""
    for command in cpp.SIMULATION.commands("monarch_sim"):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return cpp.SIMULATION.folder / "monarch_sim"


def cast(program: Path, procs: int, fan_out: int, *, distinct: bool = False) -> dict[str, Any]:
    """Simulate one size; what the program says of it."""
    command = [str(program), "--scale", str(procs), "--fan-out", str(fan_out)]
    done = subprocess.run(
        [*command, *(["--distinct"] if distinct else [])],
        check=True,
        capture_output=True,
        text=True,
    )
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def size(count: float) -> str:
    """Bytes, as people read them."""
    for unit in ("B", "kB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.2f} MB"


def line(row: dict[str, Any]) -> str:
    """One line of the table."""
    star = row["fan_out"] >= row["hosts"] and row["depth"] == 1
    cells = (
        f"{row['procs']:,}",
        f"{row['hosts']:,}",
        "all" if star else str(row["fan_out"]),
        str(row["depth"]),
        f"{row['have_it_ms']:.2f} ms",
        f"{row['answered_ms']:.2f} ms",
        f"{size(row['client_bytes'])}, {row['client_messages']:,}",
        f"{size(row['agent_bytes_max'])} ({size(row['agent_bytes_mean'])})",
        f"{row['agent_messages_max']:,} ({row['agent_messages_mean']:.0f})",
    )
    return "| " + " | ".join(cells) + " |"


def tables(program: Path, sizes: tuple[int, ...]) -> str:
    """Each size at the usual fan-out and without a tree; then the largest at each fan-out."""
    largest = sizes[-1]
    first = [line(cast(program, procs, USUAL)) for procs in sizes]
    star = [line(cast(program, procs, STAR)) for procs in sizes]
    by_fan_out = [line(cast(program, largest, fan_out)) for fan_out in FAN_OUTS]
    apart = [line(cast(program, procs, USUAL, distinct=True)) for procs in sizes]
    parts = (
        ("Equal answers, fan-out 16:", first),
        ("The same without a tree, every agent below the client:", star),
        (f"{largest:,} processes by fan-out:", by_fan_out),
        ("Fan-out 16, every answer another one (8 bytes each):", apart),
    )
    return "\n\n".join("\n".join([text, "", HEAD, *rows]) for text, rows in parts)


def write_page(text: str) -> None:
    """Put the tables between the marks of the page."""
    page = PAGE.read_text(encoding="utf-8")
    part = re.compile(r"(<!-- tables -->\n).*(<!-- end -->)", re.DOTALL)
    PAGE.write_text(
        part.sub(lambda found: found[1] + text + "\n" + found[2], page), encoding="utf-8"
    )


def main() -> None:
    """Build, run, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="up to 10,000 processes")
    parser.add_argument("--write", action="store_true", help="put the tables into the docs page")
    chosen = parser.parse_args()
    text = tables(build(), SIZES[:-1] if chosen.quick else SIZES)
    print(text)
    if chosen.write:
        write_page(text)


if __name__ == "__main__":
    main()
