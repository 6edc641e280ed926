"""Jobs as JSON: a class path and the fields of the spec. Never pickle.

Values are those of JSON, and tuples, paths, bytes, sets, dictionaries with other keys than text,
dataclasses and jobs within jobs; each of these is an object with one key that starts with `$`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import stat
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from monarch._job import fields as stored_fields
from monarch.errors import JobStateError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from monarch._job.job import JobTrait

SCHEMA = 1
_LIMIT = 16 << 20  # bytes of a state file
_ADVICE = (
    "put it right, or end the job's hosts if they run and remove it: the next state() makes the "
    "job anew"
)
_AGAIN = "a job that is stored is read again by the types that its class annotates"


def dumps(job: JobTrait) -> bytes:
    """The job as JSON text.

    Raises:
        JobStateError: a field holds something that cannot be stored; the text names it.

    """
    document = {"schema": SCHEMA, **_encode_job(job, type(job).__qualname__)}
    return (json.dumps(document, indent=1) + "\n").encode()


def loads(data: bytes | str, source: str = "the job's text") -> JobTrait:
    """The job that `dumps` gave this text for.

    Raises:
        JobStateError: it is no such text, its class cannot be found, or a field is missing or of
            another type than that says.

    """
    if isinstance(data, bytes) and data[:1] == b"\x80":
        raise JobStateError(
            f"{source} is a pickle, and jobs are stored as JSON here; remove it, and the next "
            "state() writes a new one"
        )
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise JobStateError(
            f"{source} is not JSON, so that it was cut or changed: {error}; {_ADVICE}"
        ) from None
    if not isinstance(document, dict) or "class" not in document:
        raise JobStateError(
            f'{source} holds no job, which is an object with "schema", "class" and "fields"; '
            f"{_ADVICE}"
        )
    schema = document.get("schema")
    if schema != SCHEMA:
        raise JobStateError(
            f'{source} has "schema" {schema!r}, and this release of monarch reads {SCHEMA}; end '
            "the job with the release that wrote it, and remove it: the next state() makes the job "
            "anew"
        )
    try:
        return _decode_job(document, source)
    except RecursionError:
        raise JobStateError(f"{source} has values within values without end; {_ADVICE}") from None


def save(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file whole or not at all, for its owner alone; a link is followed.

    Raises:
        JobStateError: it cannot be written, because the disk is full or for another reason.

    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f"{target.name}.{os.urandom(6).hex()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise JobStateError(f"{target} cannot be written: {error.strerror}") from None
        raise


def load(path: str | os.PathLike[str]) -> JobTrait:
    """The job in a file.

    Raises:
        FileNotFoundError: there is none.
        JobStateError: it holds no job, or others may write to it: it names code to import and
            processes to end.

    """
    name = os.fspath(path)
    try:
        file = open(name, "rb")  # noqa: PTH123, SIM115 - the `with` is below, out of the `try`
    except FileNotFoundError as error:
        error.strerror = (
            "There is no stored job here; the state() of a job writes one, and so does its dump()"
        )
        raise
    with file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise JobStateError(f"{name} is not a regular file")
        if found.st_uid not in {os.geteuid(), 0} or found.st_mode & 0o022:
            raise JobStateError(
                f"{name} may be written by others than uid {os.geteuid()}, and it names code to "
                "import; remove it, or take it over: chown and chmod 600"
            )
        data = file.read(_LIMIT + 1)
    if len(data) > _LIMIT:
        raise JobStateError(f"{name} has more than {_LIMIT >> 20} MiB, which no job takes")
    return loads(data, name)


@contextlib.contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Be the only one on this host who reads, makes or ends the job stored at `path`."""
    import fcntl  # noqa: PLC0415 - not everywhere, and needed here only

    folder = Path(path).absolute().parent
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _encode_job(job: JobTrait, where: str) -> dict[str, Any]:
    state = job.__getstate__()
    if not isinstance(state, dict):
        raise JobStateError(f"{where}.__getstate__ gives {type(state).__name__}, not a dict")
    stored_fields.check(type(job), state, where, _AGAIN)
    fields = {name: _encode(value, f"{where}.{name}") for name, value in state.items()}
    return {"class": _class_path(type(job)), "fields": fields}


def _class_path(cls: type) -> str:
    if "<" in cls.__qualname__:
        raise JobStateError(
            f"{cls.__qualname__} is defined inside a function, so that another program cannot find "
            "it; define it at the top of a module, or use state(cached_path=None)"
        )
    return f"{cls.__module__}:{cls.__qualname__}"


def _encode(value: Any, where: str) -> Any:
    from monarch._job.job import JobTrait  # noqa: PLC0415 - it imports this module

    if value is None or type(value) in {bool, int, str}:
        return value
    if type(value) is float:
        return value if value - value == 0 else {"$float": repr(value)}
    if isinstance(value, JobTrait):
        return {"$job": _encode_job(value, where)}
    if isinstance(value, PurePath):
        return {"$path": str(value)}
    if type(value) is list:
        return [_encode(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if type(value) is tuple:
        return {"$tuple": [_encode(item, f"{where}[{i}]") for i, item in enumerate(value)]}
    if type(value) in {set, frozenset}:
        return {f"${type(value).__name__}": [_encode(item, where) for item in value]}
    if type(value) is bytes:
        return {"$bytes": value.hex()}
    if type(value) is dict:
        items = [(k, _encode(item, f"{where}[{k!r}]")) for k, item in value.items()]
        if all(type(k) is str for k in value) and not any(k.startswith("$") for k in value):
            return dict(items)
        return {"$dict": [[_encode(k, f"key of {where}"), item] for k, item in items]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        stored_fields.check(type(value), fields, where, _AGAIN)
        named = {name: _encode(item, f"{where}.{name}") for name, item in fields.items()}
        return {"$dataclass": {"class": _class_path(type(value)), "fields": named}}
    raise JobStateError(
        f"{where} holds a {type(value).__name__}, which a job's state file cannot: leave it out in "
        "__getstate__ and make it again in _state"
    )


def _decode_job(document: Any, where: str) -> JobTrait:
    from monarch._job.job import JobTrait  # noqa: PLC0415 - it imports this module

    cls, fields = _class_and_fields(document, where)
    if not issubclass(cls, JobTrait) or cls.__abstractmethods__:
        raise JobStateError(
            f"{where}: {document['class']} is not a job, a class made of JobTrait; {_ADVICE}"
        )
    stored_fields.check(cls, fields, where, _ADVICE)
    job = cls.__new__(cls)
    job.__setstate__(fields)
    return job


def _class_and_fields(document: Any, where: str) -> tuple[type, dict[str, Any]]:
    import importlib  # noqa: PLC0415 - only to load

    path = document.get("class") if isinstance(document, dict) else None
    fields = document.get("fields") if isinstance(document, dict) else None
    if not isinstance(path, str) or not isinstance(fields, dict):
        raise JobStateError(f'{where} needs "class" (text) and "fields" (an object); {_ADVICE}')
    module, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        hint = "; it was defined in a script, move it to a module" if module == "__main__" else ""
        raise JobStateError(
            f'{where}: cannot find the class "{path}", a module and a name in it: {error}{hint}; '
            f"{_ADVICE}"
        ) from None
    if not isinstance(found, type):
        raise JobStateError(f'{where}: "{path}" is no class; {_ADVICE}')
    return found, {key: _decode(item, f"{where}: {key}") for key, item in fields.items()}


def _decode(value: Any, where: str) -> Any:
    if isinstance(value, list):
        return [_decode(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    key = next(iter(value), "")
    if not key.startswith("$"):
        return {name: _decode(item, f"{where}[{name!r}]") for name, item in value.items()}
    if key not in _SPECIAL:
        raise JobStateError(
            f'{where} has "{key}", which this release does not know (it knows '
            f"{', '.join(_SPECIAL)}); {_ADVICE}"
        )
    wanted, decode = _SPECIAL[key]
    try:
        return decode(value[key], where)
    except (TypeError, ValueError) as error:
        if isinstance(error, JobStateError):
            raise
        raise JobStateError(f'{where}: "{key}" holds {wanted}, and not this; {_ADVICE}') from None


def _decode_dataclass(held: Any, where: str) -> Any:
    cls, fields = _class_and_fields(held, where)
    if not dataclasses.is_dataclass(cls):
        raise JobStateError(f"{where}: {held['class']} is no dataclass; {_ADVICE}")
    return stored_fields.make(cls, fields, where, _ADVICE)


def _items(held: Any, where: str) -> list[Any]:
    if not isinstance(held, list):
        raise TypeError
    return [_decode(item, f"{where}[{i}]") for i, item in enumerate(held)]


_SPECIAL: dict[str, tuple[str, Any]] = {
    "$float": ("a number that JSON has not", lambda held, _: float(held)),
    "$job": ("a job", _decode_job),
    "$path": ("a path", lambda held, _: Path(held)),
    "$tuple": ("a list", lambda held, where: tuple(_items(held, where))),
    "$set": ("a list", lambda held, where: set(_items(held, where))),
    "$frozenset": ("a list", lambda held, where: frozenset(_items(held, where))),
    "$bytes": ("hexadecimal digits", lambda held, _: bytes.fromhex(held)),
    "$dict": ("a list of pairs", lambda held, where: dict(_items(held, where))),
    "$dataclass": ("a class and its fields", _decode_dataclass),
}
