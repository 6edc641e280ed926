"""Settings of the runtime.

The strongest first: an option given in a call, the environment, `configure()`, what the parent
process was configured with, `monarch.toml`, the default. A setting is called the same everywhere:
`stop_actor_timeout` is `MONARCH_STOP_ACTOR_TIMEOUT` in the environment and
`stop_actor_timeout = "10s"` in the file, which is `monarch.toml` in the working directory or the
file that `MONARCH_CONFIG` names. Durations are strings: "500ms", "30s", "1h 30m". An unknown name
is an error. Settings of Monarch that have no effect here are taken and kept;
`docs/configuration.md` lists them.
"""

from __future__ import annotations

import os

from monarch.config._settings import LEAST, SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import enum
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    class Encoding(enum.Enum):
        """How messages are written. Accepted for programs that set it; there is one way here."""

        Bincode = 0
        Json = 1
        Multipart = 2


__all__ = [
    "Encoding",
    "clear_runtime_config",
    "configure",
    "configured",
    "get_global_config",
    "get_runtime_config",
    "parametrize_config",
    "parametrize_config_pointwise",
]

_TRANSPORTS = (
    *("unix", "ipc", "local", "tcp", "tls", "metatls", "metatls-hostname"),
    *("Unix", "Local", "TcpWithLocalhost", "TcpWithHostname", "Tls"),
    *("MetaTlsWithHostname", "MetaTlsWithIpV6", "Quic"),
    *("MetaQuicWithHostname", "MetaQuicWithIpV6"),
)
_SCHEMES = ("ipc://", "tcp://", "tls://", "metatls://", "inproc://")

INHERITED = "MONARCH_INHERITED_CONFIG"
"""The environment variable by which a proc gets what its parent was configured with, as JSON."""

_SECOND = 10**9
_UNITS = {"d": 86400 * _SECOND, "h": 3600 * _SECOND, "m": 60 * _SECOND, "s": _SECOND}
_UNITS |= {"ms": 10**6, "us": 10**3, "ns": 1}
_ALIASES = {"sec": "s", "secs": "s", "min": "m", "mins": "m", "hr": "h", "hrs": "h"}

prefix_python_logs_with_actor = True
"""Whether log records that an actor makes begin with who it is; set it in the actor's process."""

_runtime: dict[str, Any] = {}
_files: dict[str, dict[str, Any]] = {}


def configure(**kwargs: Any) -> None:
    """Set settings for this process and the procs that it spawns from now on.

    The environment is stronger. Nothing is set where one of them is refused.

    Raises:
        ValueError: a setting does not exist, or a value is out of range.
        TypeError: a value is of the wrong type, or is no duration.

    """
    _runtime.update({name: _checked(name, value, name) for name, value in kwargs.items()})


def get_global_config() -> dict[str, Any]:
    """All settings as they are in force, by name; a copy. Durations are strings."""
    return {name: _in_force(name) for name in SETTINGS}


def get_runtime_config() -> dict[str, Any]:
    """What `configure()` has set in this process, by name; a copy."""
    return dict(_runtime)


def clear_runtime_config() -> None:
    """Forget what `configure()` has set; environment, file and defaults stay."""
    _runtime.clear()


def configured(**overrides: Any) -> AbstractContextManager[dict[str, Any]]:
    """Settings for the time of a `with` block, which gets all settings as they are in force.

    Raises as `configure()` does.
    """
    from contextlib import contextmanager  # noqa: PLC0415 - the runtime itself does without

    @contextmanager
    def block() -> Iterator[dict[str, Any]]:
        before = get_runtime_config()
        try:
            configure(**overrides)
            yield get_global_config()
        finally:
            _runtime.clear()
            _runtime.update(before)

    return block()


def value(name: str, option: Any = None) -> Any:
    """A setting as the runtime uses it: durations in seconds. `option` is stronger where given.

    Raises:
        ValueError, TypeError: as `configure()`, naming the variable or file that gave the value.

    """
    found = _in_force(name) if option is None else _checked(name, option, name)
    return _nanoseconds(found) / _SECOND if SETTINGS[name][0] == "duration" else found


def inherited() -> dict[str, str]:
    """Environment variables that give a new proc what this process was configured with."""
    told = {**_parents(), **_runtime}
    if not told:
        return {}
    import json  # noqa: PLC0415 - only where something was configured

    return {INHERITED: json.dumps({name: _plain(value) for name, value in told.items()})}


def parametrize_config(**config_options: set[Any]) -> Callable[[Callable[..., Any]], Any]:
    """Run a pytest test under each combination of settings: `@parametrize_config(a={1, 2})`.

    Raises:
        ValueError: no setting is given.

    """
    import itertools  # noqa: PLC0415 - for tests only

    from monarch.config._pytest import parametrized  # noqa: PLC0415

    options = [list(values) for values in config_options.values()]
    rows = list(itertools.product(*options))
    return parametrized("parametrize_config", config_options, rows)


def parametrize_config_pointwise(
    **config_options: Sequence[Any],
) -> Callable[[Callable[..., Any]], Any]:
    """Run a pytest test once for each place in the sequences, which are equally long.

    Raises:
        ValueError: no setting is given, or the sequences differ in length.

    """
    from monarch.config._pytest import parametrized  # noqa: PLC0415 - for tests only

    lengths = {name: len(values) for name, values in config_options.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"parametrize_config_pointwise takes one value of each setting at a time, got {lengths}"
        )
    rows = list(zip(*config_options.values(), strict=True))
    return parametrized("parametrize_config_pointwise", config_options, rows)


def _in_force(name: str) -> Any:
    kind, default = SETTINGS[name][:2]
    for prefix in ("MONARCH_", "HYPERACTOR_"):
        variable = prefix + name.upper()
        text = os.environ.get(variable)
        if text is not None:
            return _checked(name, _from_text(kind, text, variable), variable)
    if name in _runtime:
        return _runtime[name]
    for layer in (_parents, _file):
        found = layer()
        if name in found:
            return found[name]
    return _encoding(default, name) if kind == "encoding" else default


def _parents() -> dict[str, Any]:
    text = os.environ.get(INHERITED)
    if not text:
        return {}
    import json  # noqa: PLC0415 - only where a parent configured something

    return {name: _from_plain(name, value, INHERITED) for name, value in json.loads(text).items()}


def _file() -> dict[str, Any]:
    """Settings of the file, read once for each path."""
    named = os.environ.get("MONARCH_CONFIG")
    try:
        path = os.path.abspath(named or "monarch.toml")  # noqa: PTH100 - pathlib is slow to import
    except FileNotFoundError:  # the folder where the program is has been removed
        path = named or "monarch.toml"
    settings = _files.get(path)
    if settings is None:
        settings = _files[path] = _read(path, must=named is not None)
    return settings


def _read(path: str, *, must: bool) -> dict[str, Any]:
    try:
        with open(path, "rb") as stream:  # noqa: PTH123 - pathlib is slow to import
            import tomllib  # noqa: PLC0415 - only where there is a file

            content = tomllib.load(stream)
    except FileNotFoundError:
        if must:
            raise ValueError(f"MONARCH_CONFIG names {path}, which does not exist") from None
        return {}
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as TOML: {error}") from None
    return {name: _from_plain(name, value, path) for name, value in content.items()}


def _checked(name: str, value: Any, source: str) -> Any:
    """The value in the form it is kept in; refused where it does not fit."""
    where = name if source == name else f"{source}: {name}"
    if name not in SETTINGS:
        raise ValueError(f"{where} is no setting{_near(name)}")
    kind = SETTINGS[name][0]
    if kind == "duration":
        if not isinstance(value, str):
            raise TypeError(f'{where} is a duration as "30s", got {value!r}')
        nanoseconds = _nanoseconds(value, where)
        if name in LEAST and nanoseconds < _nanoseconds(LEAST[name]):
            raise ValueError(f"{where} is at least {LEAST[name]}, got {value!r}")
        return _duration(nanoseconds)
    if kind == "transport":
        return _transport(value, where)
    if value is None and kind in {"integer?", "range"}:
        return value
    type_: Any
    type_, what = {
        "integer": (int, "an integer"),
        "integer?": (int, "an integer or None"),
        "fraction": ((int, float), "a number from 0 to 1"),
        "switch": (bool, "True or False"),
        "text": (str, "a string"),
        "range": (slice, "a slice of ports"),
        "encoding": (_encodings(), "an Encoding") if kind == "encoding" else (object, ""),
    }[kind]
    if not isinstance(value, type_) or (isinstance(value, bool) and kind != "switch"):
        raise TypeError(f"{where} is {what}, got {value!r}")
    if isinstance(value, (int, float)) and value < LEAST.get(name, 0):
        least = f"at least {LEAST[name]}" if name in LEAST else "not negative"
        raise ValueError(f"{where} is {least}, got {value}")
    if kind == "fraction" and value > 1:
        raise ValueError(f"{where} is {what}, got {value}")
    return float(value) if kind == "fraction" else value


def _transport(value: Any, where: str) -> Any:
    if type(value).__name__ == "ChannelTransport":
        return value
    if not isinstance(value, str):
        raise TypeError(f"{where} is a ChannelTransport or a string, got {value!r}")
    if value not in _TRANSPORTS and not value.startswith(_SCHEMES):
        raise ValueError(
            f"{where} is one of {', '.join(_TRANSPORTS)}, or an address as tcp://127.0.0.1:8080, "
            f"got {value!r}"
        )
    return value


def _from_text(kind: str, text: str, where: str) -> Any:
    """What a variable of the environment says, as a value of the setting's kind."""
    if kind == "switch":
        if text.lower() in {"1", "true", "yes", "on"}:
            return True
        if text.lower() in {"", "0", "false", "no", "off"}:
            return False
        raise ValueError(f"{where} is true or false, got {text!r}")
    if kind in {"integer", "integer?", "fraction"}:
        try:
            return float(text) if kind == "fraction" else int(text)
        except ValueError:
            raise ValueError(f"{where} is a number, got {text!r}") from None
    if kind == "range":
        start, separator, stop = text.partition("..")
        if not (separator and start.isdigit() and stop.isdigit()):
            raise ValueError(f"{where} is a range of ports as 8000..9000, got {text!r}")
        return slice(int(start), int(stop))
    return _encoding(text, where) if kind == "encoding" else text


def _plain(value: Any) -> Any:
    """A value as JSON and TOML can hold it."""
    if isinstance(value, slice):
        return f"{value.start}..{value.stop}"
    return value if isinstance(value, (bool, int, float, str, type(None))) else value.name


def _from_plain(name: str, value: Any, source: str) -> Any:
    kind = SETTINGS[name][0] if name in SETTINGS else ""
    if isinstance(value, str) and kind in {"range", "encoding"}:
        value = _from_text(kind, value, f"{source}: {name}")
    return _checked(name, value, source)


def _encoding(name: str, where: str) -> Any:
    for one in _encodings():
        if one.name.lower() == name.lower():
            return one
    raise ValueError(f"{where} is Bincode, Json or Multipart, got {name!r}")


def _encodings() -> Any:
    return globals().get("Encoding") or __getattr__("Encoding")


def _nanoseconds(text: str, where: str = "a duration") -> int:
    """A duration: numbers with units, as "1h 30m" or "500ms"."""
    total: float = 0
    rest = text.replace(" ", "")
    while rest:
        digits = len(rest) - len(rest.lstrip("0123456789."))
        letters = len(rest[digits:]) - len(rest[digits:].lstrip("abcdefghijklmnopqrstuvwxyz"))
        unit = rest[digits : digits + letters]
        scale = _UNITS.get(_ALIASES.get(unit, unit))
        try:
            number = float(rest[:digits]) if "." in rest[:digits] else int(rest[:digits])
            total += number * (scale or int("no unit"))
        except ValueError:
            break
        rest = rest[digits + letters :]
    if rest or not text.strip():
        raise TypeError(
            f'Invalid duration format: {where} is a duration as "30s", "500ms" or "1h 30m", got '
            f"{text!r}"
        )
    return round(total)


def _duration(nanoseconds: int) -> str:
    parts = []
    for unit, scale in _UNITS.items():
        count, nanoseconds = divmod(nanoseconds, scale)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts) or "0s"


def _near(name: str) -> str:
    import difflib  # noqa: PLC0415 - only on the way out

    near = difflib.get_close_matches(name, SETTINGS, 1)
    return f"; did you mean {near[0]}?" if near else "; docs/configuration.md lists them"


def __getattr__(name: str) -> Any:
    if name == "Encoding":
        import enum  # noqa: PLC0415 - slow to import, and hardly used

        members = {"Bincode": 0, "Json": 1, "Multipart": 2}
        return globals().setdefault(name, enum.Enum(name, members, module=__name__))
    raise AttributeError(f"module 'monarch.config' has no attribute {name!r}")
