"""Writes the parts of the pages that come from the code. `python docs/generate.py` updates them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

_ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT), str(_ROOT / "runtime")]

from monarch.config import SETTINGS
from port import policy
from port.errors import ExitCode
from port.hipify import findings, rules
from port.hipify.cli import main as hipify
from port.verify import checks, report, sources
from port.verify.command import command as verify

if TYPE_CHECKING:
    from collections.abc import Iterable

    import click

DOCS = Path(__file__).resolve().parent
_PART = re.compile(r"(<!-- generated: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
_EXIT_CODES = {
    ExitCode.CLEAN: "clean",
    ExitCode.FINDINGS: "something was found: residue, a failed check, a difference",
    ExitCode.USAGE: "wrong usage, or an input that cannot be read",
    ExitCode.LIMIT: "a limit of time, size or memory was hit",
    ExitCode.ENVIRONMENT: "this machine lacks something: a toolchain, a package, a driver",
    ExitCode.BUG: "a bug of ours; the traceback is above the last line",
    ExitCode.INTERRUPTED: "interrupted",
}


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table of Markdown, with pipes in its cells made harmless."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines
    )


def options(command: click.Command) -> str:
    """Options of a command, as its help has them."""
    rows = []
    for parameter in command.params:
        record = parameter.get_help_record(command.make_context("", [], resilient_parsing=True))
        if record is not None:
            rows.append((f"`{record[0]}`", " ".join(record[1].split())))
    return table(("option", "meaning"), rows)


def settings(*, effect: bool) -> str:
    """Settings of the runtime: those with an effect, or those without."""
    rows = [
        (f"`{name}`", kind, f"`{default}`" if default != "" else "", what)
        for name, (kind, default, has_effect, what) in SETTINGS.items()
        if has_effect == effect
    ]
    return table(("setting", "kind", "default", "what it is"), rows)


def parts() -> dict[str, str]:
    """Every generated part by its name."""
    meanings = {**findings.MEANINGS, **rules.MEANINGS}
    texts = [function.__doc__ or "" for function in checks.ALL] + [sources.__doc__ or ""]
    told = {
        code: what
        for text in texts
        for code, _, what in [" ".join(text.partition("\n\n")[0].split()).partition(": ")]
    }
    keys = (
        (f"`{table_name}.{key}`" if table_name else f"`{key}`", wanted, meaning)
        for (table_name, key), (_, wanted, meaning) in policy.KEYS.items()
    )
    return {
        "exit-codes": table(
            ("code", "meaning"), ((str(int(code)), _EXIT_CODES[code]) for code in ExitCode)
        ),
        "hipify-options": options(hipify),
        "hipify-rules": table(
            ("rule", "says"), ((f"`{rule}`", meanings[rule]) for rule in sorted(meanings))
        ),
        "verify-options": options(verify),
        "verify-checks": table(
            ("code", "name", "what has to hold"),
            ((code, f"`{name}`", told[code]) for code, name in report.NAMES.items()),
        ),
        "policy-keys": table(("key", "value", "meaning"), keys),
        "settings": settings(effect=True),
        "settings-without-effect": settings(effect=False),
    }


def rendered(text: str, made: dict[str, str]) -> str:
    """`text` with its generated parts as `made` has them."""
    return _PART.sub(lambda part: part[1] + made[part[2]] + part[3], text)


def main() -> None:
    made = parts()
    for path in sorted(DOCS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        new = rendered(text, made)
        if new != text:
            path.write_text(new, encoding="utf-8")
            print(path.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
