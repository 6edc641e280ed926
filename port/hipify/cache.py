"""What an output folder remembers of its last run, so that a file that did not change is not
converted again.

An entry holds for a file's content; its result, in addition, for everything else a conversion
depends on: this tool's own bytes, the options, and what all files of the project declare.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import astuple, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from port.hipify.facts import Facts
from port.hipify.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from port.hipify.options import Options

FILE = "cache.json"
_TOOL_SUFFIXES = (".py", ".gz", ".toml")


@dataclass(frozen=True, slots=True)
class Entry:
    """The result of one file: as `pipeline.Result`, with a hash in place of the bytes."""

    context: str
    output: str
    status: str
    findings: tuple[Finding, ...]
    carried: frozenset[str]
    replaced: int
    lines_added: int


@dataclass(slots=True)
class Cache:
    """Facts and results by the SHA-256 of a file's path and content."""

    facts: dict[str, Facts] = field(default_factory=dict)
    results: dict[str, Entry] = field(default_factory=dict)

    def dump(self) -> bytes:
        """The bytes of the cache file; equal caches have equal bytes."""
        data = {
            "tool": tool_digest(),
            "facts": {key: _facts_json(self.facts[key]) for key in sorted(self.facts)},
            "results": {key: _entry_json(self.results[key]) for key in sorted(self.results)},
        }
        body = json.dumps(data, separators=(",", ":")).encode()[1:]
        return _head(body) + body


def load(data: bytes | None) -> Cache:
    """The cache in `data`; empty where it is missing, damaged or another version's."""
    body = (data or b"")[len(_head(b"")) :]
    if not body or data != _head(body) + body:
        return Cache()
    found = json.loads(data)
    if found["tool"] != tool_digest():
        return Cache()
    facts = {key: _facts_of(each) for key, each in found["facts"].items()}
    results = {key: _entry_of(each) for key, each in found["results"].items()}
    return Cache(facts, results)


def _head(body: bytes) -> bytes:
    """What stands before `body`: a damaged cache would hide findings."""
    return b'{"sha256":"%b",' % hashlib.sha256(body).hexdigest().encode()


def key(path: str, digest: str) -> str:
    """The key of a file with this path and content."""
    return hashlib.sha256(f"{digest} {path}".encode("utf-8", "surrogateescape")).hexdigest()[:32]


def context_digest(
    options: Options, overrides: Mapping[str, str], facts: Mapping[str, Facts], files: Iterable[str]
) -> str:
    """Of everything besides its own content that a file's conversion depends on."""
    everything = [
        tool_digest(),
        astuple(options),
        dict(overrides),
        [(path, _facts_json(facts[path])) for path in sorted(facts)],
        sorted(files),
    ]
    text = json.dumps(everything, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def tool_digest() -> str:
    """Of the code and tables of this package."""
    hashed = hashlib.sha256()

    for path in sorted(Path(__file__).parent.rglob("*")):
        if path.suffix in _TOOL_SUFFIXES:
            hashed.update(path.name.encode())
            hashed.update(path.read_bytes())
    return hashed.hexdigest()


def _text(data: bytes) -> str:
    return data.decode("latin-1")


def _facts_json(facts: Facts) -> list[Any]:
    return [
        sorted([_text(owner), _text(name)] for owner, name in facts.owned),
        sorted(map(_text, facts.declared)),
        sorted(map(_text, facts.defined)),
        sorted([_text(owner), _text(name)] for owner, name in facts.imported),
        [list(each) for each in facts.includes],
        sorted(map(_text, facts.used)),
        sorted([_text(alias), _text(meant)] for alias, meant in facts.aliases),
        sorted((_text(name), value) for name, value in facts.constants),
        sorted(facts.enumerations),
        sorted([*map(_text, each)] for each in facts.pastes),
        sorted([*map(_text, each)] for each in facts.passed),
        sorted(map(_text, facts.longer)),
    ]


def _facts_of(data: list[Any]) -> Facts:
    owned, declared, defined, imported, includes, used, aliases, constants, *others = data
    enumerations, pastes, passed, longer = others

    def pairs(listed: list[list[str]]) -> frozenset[tuple[bytes, bytes]]:
        return frozenset((one.encode("latin-1"), two.encode("latin-1")) for one, two in listed)

    def names(listed: list[str]) -> frozenset[bytes]:
        return frozenset(each.encode("latin-1") for each in listed)

    def rows(listed: list[list[str]]) -> frozenset[tuple[bytes, ...]]:
        return frozenset(tuple(each.encode("latin-1") for each in row) for row in listed)

    return Facts(
        pairs(owned),
        names(declared),
        names(defined),
        pairs(imported),
        tuple((path, angled) for path, angled in includes),
        names(used),
        pairs(aliases),
        frozenset((name.encode("latin-1"), value) for name, value in constants),
        frozenset(enumerations),
        rows(pastes),
        rows(passed),
        names(longer),
    )


def _entry_json(entry: Entry) -> list[Any]:
    return [
        entry.context,
        entry.output,
        entry.status,
        [_finding_json(finding) for finding in entry.findings],
        sorted(entry.carried),
        entry.replaced,
        entry.lines_added,
    ]


def _finding_json(found: Finding) -> list[Any]:
    place = [found.file, found.line, found.column]
    return [*place, found.rule, found.severity, found.name, found.message, found.remedy]


def _entry_of(data: list[Any]) -> Entry:
    context, output, status, findings, carried, replaced, lines_added = data
    found = tuple(Finding(*each) for each in findings)
    return Entry(context, output, status, found, frozenset(carried), replaced, lines_added)
