"""The job that is worked with: a name of it under `.monarch/`, beside its state.

`.monarch/job_state.json` is a link to `CONTEXT/state.json`; `CONTEXT/spec` names the job as
`module.attribute`.
"""

from __future__ import annotations

from pathlib import Path

from monarch._job import stored
from monarch._job.job import DEFAULT_JOB_PATH, JobTrait
from monarch.errors import JobStateError

_ADVICE = "set_current_job('module.name') chooses a job"
_STATE, _SPEC, _DEFAULT = "state.json", "spec", "default"


def set_current_job(module_path: str) -> None:
    """Make `module.attribute` the job that `load_current_job` gives, in this folder.

    Raises:
        ValueError: the text has no dot.

    """
    _split(module_path)
    link = Path(DEFAULT_JOB_PATH)
    if not link.is_symlink():
        folder = link.parent / _DEFAULT
        folder.mkdir(parents=True, exist_ok=True)
        if link.exists():
            link.rename(folder / _STATE)
        link.symlink_to(Path(_DEFAULT) / _STATE)
    stored.save(_spec(), f"{module_path}\n".encode())


def load_current_job() -> JobTrait:
    """The job that `set_current_job` named: its specification, not attached to anything yet.

    Raises:
        FileNotFoundError: no job was named in this folder.
        JobStateError: the file that names it does so no more, as after a change by hand.
        ImportError: there is no such module.
        AttributeError: its module has no such name.
        TypeError: it is something else than a job.

    """
    import importlib  # noqa: PLC0415 - only here

    path = _spec()
    try:
        name = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"no job was chosen in this folder: {path} is missing; set_current_job('module.name') "
            "chooses one"
        ) from None
    except (OSError, ValueError) as error:
        raise JobStateError(f"{path} cannot be read: {error}; {_ADVICE}") from None
    try:
        module, attribute = _split(name)
    except ValueError as error:
        raise JobStateError(f"{path}: {error}; {_ADVICE}") from None
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        error.msg = f"{error.msg}, and {path} names {name} as the job; {_ADVICE}"
        raise
    found = getattr(imported, attribute, None)
    if found is None:
        raise AttributeError(f"{path} names {name}, but module {module} has no {attribute}")
    if not isinstance(found, JobTrait):
        raise TypeError(f"{path} names {name}, which is a {type(found).__name__} and not a job")
    return found


def _split(name: str) -> tuple[str, str]:
    module, dot, attribute = name.rpartition(".")
    if not dot or not module or not attribute:
        raise ValueError(f"a job is named by module.attribute, as train.job, not by {name!r}")
    return module, attribute


def _spec() -> Path:
    link = Path(DEFAULT_JOB_PATH)
    if link.is_symlink():
        return link.parent / link.readlink().parent / _SPEC
    return link.parent / _DEFAULT / _SPEC
