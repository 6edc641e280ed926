"""What a wheel of one platform may link and carry: one TOML file, read by repair and verify alike.

A file stands on its own: a key that is absent demands nothing. `docs/verify.md` lists the keys.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn, cast, get_args

from port.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

Platform = Literal["cpu", "cuda", "rocm"]
Linkage = Literal["any", "none", "static", "dynamic"]
RunPathTag = Literal["any", "rpath", "runpath"]

PLATFORMS: tuple[Platform, ...] = get_args(Platform)
SCHEMA = 1

Patterns = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy. Patterns are shell patterns; sizes are bytes; None means "not demanded".

    `needed_*` and `repair_exclude` match whole library file names (`libamdhip64.so.6`);
    `bundled_forbidden` matches base names, without `.so…` and without a repair tool's hash.
    """

    source: str
    platform: Platform
    distribution: str | None = None
    runtime_linkage: Linkage = "any"
    needed_required: Patterns = ()
    needed_forbidden: Patterns = ()
    repair_exclude: Patterns = ()
    bundled_forbidden: Patterns = ()
    provided: Mapping[str, Patterns] = field(default_factory=dict)
    device_required: bool = False
    device_architectures: Patterns = ()
    exports_allowed: Patterns | None = None
    undefined_allowed: Patterns = ()
    rpath_allowed: Patterns = ()
    rpath_tag: RunPathTag = "any"
    size_wheel: int | None = None
    size_file: int | None = None
    tag_newest: str | None = None

    def for_others(self) -> Policy:
        """The part that holds for anybody's wheel: device code, architectures, exports and sizes
        are reported, not demanded.
        """
        return dataclasses.replace(
            self,
            distribution=None,
            device_required=False,
            device_architectures=(),
            exports_allowed=None,
            size_wheel=None,
            size_file=None,
            tag_newest=None,
        )


class Key(NamedTuple):
    """A key of the file: the field of Policy that it sets, its kind of value, and its meaning."""

    field: str
    wanted: str
    meaning: str


_LIST, _BYTES = "a list of strings", "a positive integer"

# Table and key in the file. The one list of what a file may hold; "*" stands for any key.
KEYS: dict[tuple[str, str], Key] = {
    ("", "schema"): Key("", "the integer 1", "version of this format"),
    ("", "platform"): Key(
        "platform", "one of cpu, cuda, rocm", "the platform that the policy is for"
    ),
    ("", "distribution"): Key(
        "distribution", "a string", "the distribution that is held to all of it without being told"
    ),
    ("runtime", "linkage"): Key(
        "runtime_linkage",
        "one of any, none, static, dynamic",
        "how the GPU runtime is linked; static has to be proven (V01)",
    ),
    ("needed", "required"): Key(
        "needed_required", _LIST, "libraries that one file at least has in NEEDED (V01, V03)"
    ),
    ("needed", "forbidden"): Key(
        "needed_forbidden", _LIST, "libraries that no file has in NEEDED (V01, V02, V03, V09)"
    ),
    ("repair", "exclude"): Key(
        "repair_exclude", _LIST, "libraries that repair leaves out of the wheel"
    ),
    ("bundled", "forbidden"): Key(
        "bundled_forbidden", _LIST, "base names of libraries that are not in the wheel (V01, V03)"
    ),
    ("provided", "*"): Key(
        "provided", _LIST, "libraries that the distribution named by the key brings (V15)"
    ),
    ("device", "required"): Key(
        "device_required", "true or false", "whether there has to be device code (V10)"
    ),
    ("device", "architectures"): Key(
        "device_architectures", _LIST, "architectures that there has to be code for (V10)"
    ),
    ("exports", "allowed"): Key(
        "exports_allowed", _LIST, "symbols that an extension module may export, no others (V18)"
    ),
    ("undefined", "allowed"): Key(
        "undefined_allowed", _LIST, "symbols that may stay undefined (V15)"
    ),
    ("rpath", "allowed"): Key(
        "rpath_allowed", _LIST, "run path entries that are accepted as they are (V05)"
    ),
    ("rpath", "tag"): Key(
        "rpath_tag", "one of any, rpath, runpath", "which tag a run path has to have (V06)"
    ),
    ("size", "wheel"): Key("size_wheel", _BYTES, "most bytes of the wheel (V13)"),
    ("size", "file"): Key("size_file", _BYTES, "most bytes of one file, unpacked (V13)"),
    ("tag", "newest"): Key(
        "tag_newest", "a tag such as manylinux_2_34", "newest platform tag that is accepted (V11)"
    ),
}
_TABLES = {table for table, _ in KEYS if table}


def load(which: str | Path) -> Policy:
    """The policy of a platform ("cpu", "cuda", "rocm"), or the one in a file.

    Raises:
        InputError: names file, line and key of what is not as documented.

    """
    if isinstance(which, str) and which in PLATFORMS:
        path = Path(__file__).parent / f"{which}.toml"
    else:
        path = Path(which)
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot read the policy file: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: a policy file is UTF-8: {error}") from None
    return parse(text, str(path))


def parse(text: str, source: str) -> Policy:
    """The policy in `text`; `source` names it in errors.

    Raises:
        InputError: as `load` does.

    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        place = line.group(1) if line else str(text.count("\n") + 1)
        raise InputError(f"{source}:{place}: not TOML: {error}") from None
    except RecursionError:
        raise InputError(f"{source}:1: nested too deeply; wanted tables of values") from None
    return _Reader(text, source).policy(document)


class _Reader:
    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source

    def policy(self, document: Mapping[str, object]) -> Policy:
        values: dict[str, object] = {}
        provided: dict[str, Patterns] = {}
        for name, value in document.items():
            if name in _TABLES:
                if not isinstance(value, dict):
                    self._fail("", name, "wanted a table")
                for key, inner in value.items():
                    if name == "provided":
                        provided[key] = cast("Patterns", self._value(name, key, inner))
                    else:
                        self._take(values, name, key, inner)
            else:
                self._take(values, "", name, value)
        for key in ("schema", "platform"):
            if key not in document:
                raise InputError(f"{self._source}:1: {key}: missing; wanted {KEYS['', key].wanted}")
        return Policy(source=self._source, provided=provided, **values)  # type: ignore[arg-type]

    def _take(self, values: dict[str, object], table: str, key: str, value: object) -> None:
        found = self._value(table, key, value)
        if KEYS[table, key].field:
            values[KEYS[table, key].field] = found

    def _value(self, table: str, key: str, value: object) -> object:
        known = KEYS.get((table, key)) or KEYS.get((table, "*"))
        if known is None:
            names = [k for t, k in KEYS if t == table] + ([] if table else sorted(_TABLES))
            import difflib  # noqa: PLC0415 - only a wrong key needs it

            near = difflib.get_close_matches(key, names, n=1)
            self._fail(table, key, f"unknown key; {self._hint(near, names)}")
        wanted = known.wanted
        if not _fits(value, wanted):
            self._fail(table, key, f"found {value!r}, wanted {wanted}")
        return tuple(cast("list[str]", value)) if isinstance(value, list) else value

    @staticmethod
    def _hint(near: list[str], names: list[str]) -> str:
        return f"did you mean {near[0]}?" if near else f"known here: {', '.join(names)}"

    def _fail(self, table: str, key: str, what: str) -> NoReturn:
        dotted = f"{table}.{key}" if table else key
        raise InputError(f"{self._source}:{self._line(table, key)}: {dotted}: {what}")

    def _line(self, table: str, key: str) -> int:
        """Line of a key. tomllib keeps no positions, so the text is walked once more, on error."""
        spelled = rf"(?:{re.escape(key)}|\"{re.escape(key)}\"|'{re.escape(key)}')"
        in_table = re.compile(rf"\s*{spelled}\s*[.=]")
        at_top = re.compile(rf"\s*{re.escape(table)}\s*(?:\.\s*{spelled}|=)")
        current = ""
        for number, line in enumerate(self._text.splitlines(), 1):
            header = re.match(r"\s*\[\s*([^\]]+?)\s*\]", line)
            if header:
                current = header.group(1).strip("\"'")
                if not table and current.split(".")[0] == key:
                    return number
            elif (current == table and in_table.match(line)) or (
                not current and at_top.match(line)
            ):
                return number
        return 1


def _fits(value: object, wanted: str) -> bool:
    if wanted == "the integer 1":
        return value == SCHEMA and type(value) is int
    if wanted == "a positive integer":
        return type(value) is int and value > 0
    if wanted == "true or false":
        return isinstance(value, bool)
    if wanted == "a list of strings":
        return isinstance(value, list) and all(isinstance(item, str) and item for item in value)
    if wanted.startswith("one of "):
        return value in wanted.removeprefix("one of ").split(", ")
    if wanted == "a tag such as manylinux_2_34":
        return isinstance(value, str) and re.fullmatch(r"manylinux_\d+_\d+", value) is not None
    return isinstance(value, str) and bool(value)
