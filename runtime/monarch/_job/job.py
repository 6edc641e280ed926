"""`JobTrait`: what every job has in common, and what a kind of job adds."""

# ruff: noqa: SLF001 - a job talks to the stored one it stands for, which is of its own class

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar

from monarch._job import stored
from monarch.errors import JobError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from monarch._mesh.host_mesh import HostMesh, HostRef

DEFAULT_JOB_PATH = ".monarch/job_state.json"


class JobState:
    """The host meshes of a job, each an attribute by its name.

    `dashboard_url`, `admin_url` and `query_engine_client` are None where the job has none.
    """

    def __init__(self, hosts: Mapping[str, HostMesh]) -> None:
        self._hosts = dict(hosts)
        self.dashboard_url: str | None = None
        self.admin_url: str | None = None
        self.query_engine_client: Any = None

    def __getattr__(self, name: str) -> HostMesh:
        hosts = self.__dict__.get("_hosts", {})
        if name in hosts:
            found: HostMesh = hosts[name]
            return found
        raise AttributeError(
            f"the job has no mesh {name!r}; its meshes are {', '.join(sorted(hosts)) or 'none'}"
        )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._hosts]

    def __repr__(self) -> str:
        return f"JobState({', '.join(f'{name}={mesh!r}' for name, mesh in self._hosts.items())})"


def by_name(job: str, argument: str, given: Any, example: str) -> dict[str, Any]:
    """What a job is specified with by name.

    Raises:
        TypeError: it is no mapping.

    """
    if not hasattr(given, "items"):
        raise TypeError(f"{job}({argument}={given!r}): it is a dict, as {example}")
    return dict(given)


def check_mesh(name: Any, hosts: Any = 1) -> None:
    """Refuse what cannot be a mesh of a job.

    Raises:
        ValueError: the name cannot be an attribute, or the number of hosts is none.

    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"mesh name {name!r} must be usable as an attribute")
    if not isinstance(hosts, int) or hosts < 1:
        raise ValueError(f"mesh {name!r} has {hosts!r} hosts; that is a number, 1 or more")


class JobTrait(abc.ABC):
    """A specification of hosts, and once applied, the hosts.

    A kind of job gives `_create` (ask for the hosts), `_state` (attach to them: a `JobState`),
    `_kill` (end them) and `can_run`. It keeps its specification, and what it needs to find its
    hosts again, in attributes; these are stored as JSON, but for those that `_transient` names:
    they are of this program alone, and `_wake` makes them again in one that has loaded the job.
    An attribute that is annotated in the body of the class has to be in the file, and of this
    type. Its constructor calls this one, which takes nothing.
    """

    _transient: ClassVar[tuple[str, ...]] = ()
    _found: ClassVar[tuple[str, ...]] = ()  # what came with the hosts, and was not asked for
    _apply_id: str | None

    def __init__(self) -> None:
        super().__init__()
        self._apply_id = None
        self._cached: JobTrait | None = None

    @abc.abstractmethod
    def _create(self, client_script: str | None) -> None:
        """Ask for the hosts; with `client_script`, have that program run as their client."""

    @abc.abstractmethod
    def _state(self) -> JobState:
        """Attach to the hosts that `_create` asked for, maybe in another program."""

    @abc.abstractmethod
    def _kill(self) -> None:
        """End the hosts that `_create` asked for."""

    @abc.abstractmethod
    def can_run(self, spec: JobTrait) -> bool:
        """Whether this job, found in a file, is alive and is what `spec` asks for."""

    def _give_up(self, why: BaseException) -> None:
        """End a job that did not come to be; what cannot be ended is added to the reason."""
        try:
            self._kill()
        except JobError as error:
            why.add_note(str(error))
        self._apply_id = None

    def _keep(self) -> None:  # noqa: B027 - most kinds of job need not care
        """The job has been stored: its hosts are to outlive this program."""

    def apply(self, client_script: str | None = None) -> None:
        """Bring the job into existence; does nothing if it is.

        With `client_script`, that Python program is run as the job's client (where the kind of job
        can do so), and finds the job by `state()`.
        """
        if self._running is None:
            import uuid  # noqa: PLC0415 - imports much, once a job

            self._create(client_script)
            self._apply_id = str(uuid.uuid4())

    def state(self, cached_path: str | os.PathLike[str] | None = DEFAULT_JOB_PATH) -> JobState:
        """Attach to the job, which is applied first if need be; its host meshes.

        A job stored at `cached_path` is used if it is alive and `can_run` this specification; one
        that cannot is ended. A job applied here is stored there; with None it is not, and ends
        with this program, as far as its kind can see to that.

        Raises:
            JobStateError: the file holds no job, or this one cannot be stored.
            JobError: hosts of the job are gone or did not start.

        """
        running = self._running
        if running is not None:
            return running._state()
        if cached_path is None:
            return self._applied()
        with stored.locked(cached_path):
            self._cached = self._load_cached(cached_path)
            if self._cached is not None:
                return self._cached._state()
            stored.dumps(self)  # what cannot be stored is refused before anything is started
            state = self._applied()
            try:
                self.dump(cached_path)
            except BaseException:
                self.kill()
                raise
        return state

    def replace_node(self, node_id: str) -> HostRef:
        """Another host in place of the one with this id, which the job gives up; waits for it.

        The ids of a job's hosts are those of its `HostMesh` (`HostRef.node`), and a failure's
        `node_id`. From now on `state()` has the new host at the same rank.

        Raises:
            JobError: the job has no such host, none can be had, or its kind cannot replace any.

        """
        running = self._running
        if running is None:
            raise JobError(f"no host {node_id!r} to replace: the job does not run; apply() it")
        return running._replace(node_id)

    def _replace(self, node_id: str) -> HostRef:
        raise JobError(
            f"a {type(self).__name__} cannot replace host {node_id}: it has no others to get"
        )

    def _applied(self) -> JobState:
        """Apply the job and attach to it; what cannot be attached to is ended."""
        self.apply()
        try:
            return self._state()
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """End the job's hosts and whatever runs on them. A job that does not run is left alone."""
        running = self._running
        if running is not None:
            running._kill()
            running._apply_id = None
        self._apply_id = None
        self._cached = None

    def dump(self, filename: str | os.PathLike[str]) -> None:
        """Store the job in a file, written whole or not at all, for its owner alone.

        Raises:
            JobStateError: a field holds something that cannot be stored.

        """
        running = self._running or self
        stored.save(filename, stored.dumps(running))
        running._keep()

    def dumps(self) -> bytes:
        """The job as JSON text, for `job_loads`.

        Raises:
            JobStateError: a field holds something that cannot be stored.

        """
        running = self._running or self
        data = stored.dumps(running)
        running._keep()
        return data

    @property
    def active(self) -> bool:
        """Whether the job has been applied, here or by who stored it, and not been ended since."""
        return self._running is not None

    @property
    def apply_id(self) -> str | None:
        """Tells one allocation from the next, a UUID; None before `apply`."""
        running = self._running
        return None if running is None else running._apply_id

    @property
    def _running(self) -> JobTrait | None:
        if self._cached is not None:
            return self._cached._running
        return self if self._apply_id is not None else None

    def _load_cached(self, path: str | os.PathLike[str]) -> JobTrait | None:
        try:
            found = stored.load(path)
        except FileNotFoundError:
            return None
        running = found._running
        if running is None:
            return None
        if running.can_run(self):
            return running
        found.kill()
        import contextlib  # noqa: PLC0415 - only on the way out
        from pathlib import Path  # noqa: PLC0415

        with contextlib.suppress(FileNotFoundError):
            Path(path).resolve().unlink()
        return None

    def _wake(self) -> None:  # noqa: B027 - many kinds of job have nothing of the sort
        """Make what `_transient` names, in a program that has loaded the job."""

    def _specification(self) -> dict[str, Any]:
        """What was asked for."""
        others = {"_apply_id", "_cached", *self._found, *self._transient}
        return {name: value for name, value in self.__dict__.items() if name not in others}

    def __getstate__(self) -> Any:
        others = {"_cached", *self._transient}
        return {name: value for name, value in self.__dict__.items() if name not in others}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._cached = None
        self.__dict__.update(state)
        self._wake()


def job_loads(data: bytes | str) -> JobTrait:
    """The job that `JobTrait.dumps` gave this text for.

    Raises:
        JobStateError: it is no such text, its class cannot be found, or a field is missing or of
            another type than that says.

    """
    return stored.loads(data)


def job_load(filename: str | os.PathLike[str] = DEFAULT_JOB_PATH) -> JobTrait:
    """The job that `JobTrait.dump` or `JobTrait.state` stored in a file.

    Raises:
        FileNotFoundError: there is none.
        JobStateError: it holds no job, its class cannot be found, a field is missing or of another
            type than that says, or others may write to it.

    """
    return stored.load(filename)
