"""The shipped tables: what CUDA's headers declare, and what the headers of each HIP release do.

They were read from the headers themselves by `port.hipify.tables_gen`; `Table.sources` says from
which packages.
"""

from __future__ import annotations

import contextlib
import gzip
import json
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.version import InvalidVersion, Version

from port.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

RELEASES = ("5.2", "5.7", "6.4", "7.1")
DEFAULT_RELEASE = "6.4"

_KINDS = {
    "f": "function",
    "t": "type",
    "s": "struct",
    "e": "enum",
    "c": "enumerator",
    "m": "macro",
    "v": "variable",
}
_ABSENT = "-"
_LONGEST_CHAIN = 8  # of typedefs for typedefs


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declared name.

    `kind`: function, type (a typedef), struct, enum, enumerator, macro or variable. `header`: the
    header that declares it, as an include directive names it. `value`: an enumerator's number, a
    macro's text, the type a typedef stands for, or the name that this one is only a macro for
    (`cuMemAlloc` is `cuMemAlloc_v2`). `result`: a function's result, a variable's type, the
    enumeration of an enumerator. `parameters`: types as spelled, `...` last for a variadic one; a
    macro's parameter names. `older`: the parameters that older releases of the same name had.
    """

    name: str
    kind: str
    header: str
    value: str
    result: str
    parameters: tuple[str, ...] | None
    older: tuple[tuple[str, ...], ...]


class Table:
    """The names of one vendor's headers."""

    def __init__(self, meta: Mapping[str, Any], lines: Mapping[str, str]) -> None:
        self._lines = lines
        self._declared: dict[str, Declaration] = {}
        self._all_headers: Sequence[str] = meta["headers"]
        self.headers = frozenset(self._all_headers[: meta["listed"]])
        self.sources: Sequence[Mapping[str, Any]] = meta["sources"]

    def limited_to(
        self, names: AbstractSet[str], headers: Iterable[str], others: Iterable[Table]
    ) -> Table:
        """A table of those of `names` that this one knows, or one of `others`, the first first.

        `headers` are the header paths it has.
        """
        lines = {name: line for name, line in self._lines.items() if name in names}
        places = {header: number for number, header in enumerate(self._all_headers)}
        for other in others:
            for name in names & other._lines.keys() - lines.keys():  # noqa: SLF001 - of this class
                kind, header, *rest = other._lines[name].split("\t")  # noqa: SLF001
                place = other._all_headers[int(header)]  # noqa: SLF001
                number = places.setdefault(place, len(places))
                lines[name] = "\t".join([kind, str(number), *rest])
        made = Table({"headers": list(places), "listed": 0, "sources": self.sources}, lines)
        made.headers = frozenset(headers)
        return made

    def __contains__(self, name: object) -> bool:
        return name in self._lines

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def get(self, name: str) -> Declaration | None:
        """The declaration of `name`, or None."""
        if name in self._declared:
            return self._declared[name]
        line = self._lines.get(name)
        if line is None:
            return None
        kind, header, value, result, parameters, older = (line.split("\t") + [""] * 5)[:6]
        place = self._all_headers[int(header)]
        taken = _split(parameters) if kind in "fm" else None
        lists = tuple(_split(each) or () for each in older.split("|")) if older else ()
        made = Declaration(name, _KINDS[kind], place, value, result, taken, lists)
        self._declared[name] = made
        return made

    @cached_property
    def kinds(self) -> Mapping[bytes, str]:
        """Kinds by name as in a source."""
        return {name.encode(): _KINDS[line[0]] for name, line in self._lines.items()}

    def kind(self, name: str) -> str | None:
        """The kind of `name`, without reading the rest of its declaration."""
        line = self._lines.get(name)
        return None if line is None else _KINDS[line[0]]

    def enumeration(self, name: str) -> str | None:
        """The tag of the enumeration that `name` is, stands for, or is an enumerator of."""
        for _ in range(_LONGEST_CHAIN):
            declared = self.get(name)
            if declared is None:
                return None
            if declared.kind == "enum":
                return name
            if declared.kind == "enumerator":
                return declared.result or None
            if declared.kind != "type":
                return None
            name = declared.value.removeprefix("enum ")
        return None

    def enumerators(self, tag: str) -> Mapping[str, int]:
        """Values by name of the enumeration `tag`, in the table's order."""
        return self._enumerators.get(tag, {})

    @cached_property
    def _enumerators(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for name, line in self._lines.items():
            if line[0] == "c":
                _, _, value, tag = (line.split("\t", 4) + [""] * 3)[:4]
                with contextlib.suppress(ValueError):
                    found.setdefault(tag, {})[name] = int(value, 0)
        return found

    def members(self, struct: str) -> Mapping[str, str]:
        """Types by member of a structure or of a typedef for one, empty for any other name.

        Members of an unnamed inner structure are listed as `outer.inner`.
        """
        seen: set[str] = set()
        name = struct
        while name not in seen:
            seen.add(name)
            line = self._lines.get(name)
            if line is None or line[0] not in "ts":
                break
            fields = (line.split("\t") + [""] * 5)[:6]
            pairs = _split(fields[4])
            if pairs:
                return dict(pair.split(":", 1) for pair in pairs)
            name = fields[2].removeprefix("const ").removeprefix("struct ").removeprefix("union ")
        return {}


def load_cuda() -> Table:
    """The names of CUDA 11.8 to 13, the newest release's prototype first."""
    return _load("cuda")


def load_hip(release: str) -> Table:
    """The names of a HIP release. `release` is one of `RELEASES`; see `nearest_release`.

    Raises:
        InputError: there is no table of that release.

    """
    if release not in RELEASES:
        raise InputError(f"no table for HIP {release}; there are {', '.join(RELEASES)}")
    return _load(f"hip-{release}")


def version_number(release: str) -> int:
    """`HIP_VERSION` of a release, as HIP's hip_version.h computes it."""
    version = Version(release)
    return version.major * 10_000_000 + version.minor * 100_000


def nearest_release(asked: str) -> str:
    """The release in `RELEASES` that stands for `asked`: the same, or the nearest one not newer.

    Raises:
        InputError: it is no version, or one below the oldest table.

    """
    try:
        version = Version(asked)
    except InvalidVersion:
        raise InputError(f"{asked!r} is no ROCm version; wanted something like 6.4") from None
    fitting = [release for release in RELEASES if Version(release) <= version]
    if not fitting:
        raise InputError(f"ROCm {asked} is below {RELEASES[0]}, the oldest release supported")
    return fitting[-1]


def _split(text: str) -> tuple[str, ...] | None:
    if text == _ABSENT:
        return None
    return tuple(text.split(";")) if text else ()


@cache
def _load(name: str) -> Table:
    data = (Path(__file__).parent / "data" / f"{name}.tsv.gz").read_bytes()
    first, *lines = gzip.decompress(data).decode().split("\n")
    return Table(json.loads(first), dict(line.split("\t", 1) for line in lines))
