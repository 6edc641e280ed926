"""`SSHJob`: each host a machine that SSH reaches."""

# ruff: noqa: SLF001 - meshes and other jobs are of the same package

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING, Any

from monarch._job.attached import EXPIRES, AttachedHosts
from monarch._job.hostlist import expand
from monarch._job.job import JobState, JobTrait, by_name, check_mesh
from monarch._job.progress import Waiting
from monarch._job.ssh.remote import Connection, Running, ask
from monarch._link import secret
from monarch.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_LOOK = 0.5  # seconds between two looks at a host that is waited for
_ASK_SECONDS = 60.0  # for a host to look for its program, or to end it


class SSHJob(JobTrait):
    """A job whose hosts are machines that OpenSSH's client reaches without a password.

    On each the runtime has to be installed. A job that was not stored ends with this program; one
    that was is found again by `state()`.

    Args:
        meshes: the hosts of each mesh, by name: a list of what `ssh` takes (`user@host`, or a name
            of its configuration), or text such as "node[01-04]".
        python_exe: the interpreter there; None for the path of this one.
        ssh_args: more options of ssh, such as "-i", "key".
        monarch_port: the port that a host listens on; 0 for any that is free.
        bind_to: the IP address that a host listens on; None for the one that others reach.
        job_start_timeout: seconds for all hosts to serve.

    """

    _transient = ("_connections", "_attached")
    _python_exe: str | None
    _ssh_args: list[str]
    _port: int
    _bind_to: str | None
    _job_start_timeout: float
    _meshes: dict[str, list[str]]
    _running_hosts: list[Running]

    def __init__(
        self,
        meshes: Mapping[str, Sequence[str] | str] | None = None,
        python_exe: str | None = None,
        ssh_args: Sequence[str] = (),
        monarch_port: int = 22222,
        *,
        bind_to: str | None = None,
        job_start_timeout: float = 60.0,
    ) -> None:
        super().__init__()
        if not isinstance(monarch_port, int) or not 0 <= monarch_port < 65536:
            raise ValueError(f"monarch_port is 0 to 65535, not {monarch_port!r}")
        self._python_exe = python_exe
        self._ssh_args = list(ssh_args)
        self._port = monarch_port
        self._bind_to = bind_to
        self._job_start_timeout = job_start_timeout
        self._meshes = {}
        self._running_hosts = []
        self._connections: list[Connection] = []
        self._attached = AttachedHosts()
        given = {} if meshes is None else meshes
        for name, hosts in by_name("SSHJob", "meshes", given, '{"workers": ["n1", "n2"]}').items():
            self.add_mesh(name, hosts)

    def add_mesh(self, name: str, hosts: Sequence[str] | str) -> None:
        """Ask for one more mesh with these hosts, before the job is applied.

        Raises:
            ValueError: the name cannot be an attribute, or there is no host, or one twice.
            JobError: the job has been applied.

        """
        check_mesh(name)
        if self.active:
            raise JobError(f"mesh {name!r} comes too late: the job has been applied")
        listed = expand(hosts) if isinstance(hosts, str) else list(hosts)
        if not listed or not all(
            isinstance(h, str) and h.strip() == h and h and h[0] != "-" for h in listed
        ):
            raise ValueError(f"mesh {name!r} has hosts {listed!r}; name what ssh can reach")
        known = [host for hosts in self._meshes.values() for host in hosts]
        for rank, host in enumerate(listed):
            if host in known or host in listed[:rank]:
                raise ValueError(f"mesh {name!r} has host {host!r}, which the job has already")
        self._meshes[name] = listed

    def can_run(self, spec: JobTrait) -> bool:
        """Whether `spec` asks for the same, and the program of every host is still there."""
        if not isinstance(spec, SSHJob) or spec._wanted() != self._wanted():
            return False
        return all(status == 0 for status, _said in self._ask("check"))

    def _wanted(self) -> tuple[Any, ...]:
        return self._meshes, self._python_exe, self._ssh_args, self._port, self._bind_to

    def _create(self, client_script: str | None) -> None:
        if client_script is not None:
            raise JobError(
                "an SSHJob runs no client program: its client is the program that made it"
            )
        if not self._meshes:
            raise ValueError("the job has no mesh; add_mesh() gives it one")
        until = time.monotonic() + self._job_start_timeout
        try:
            for host in (host for hosts in self._meshes.values() for host in hosts):
                node = host.rpartition("@")[2]
                serving = ["serve", node, self._bind_to or "", str(self._port), str(EXPIRES)]
                program = self._start(host, serving)
                self._connections.append(Connection(host, program))
            self._wait(until)
        except BaseException:
            self._kill()
            raise

    def _wait(self, until: float) -> None:
        """Wait for all hosts to serve."""
        self._running_hosts = []
        with Waiting() as progress:
            for connection in self._connections:
                while not connection.answered(_LOOK) and time.monotonic() < until:
                    ready = f"{len(self._running_hosts)} of {len(self._connections)} hosts ready"
                    progress.say(f"SSH job: {ready}, next {connection.host}")
                left = max(until - time.monotonic(), 0.0)
                self._running_hosts.append(connection.running(left))

    def _start(self, host: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        return ask(host, self._ssh_args, self._python_exe, arguments)

    def _state(self) -> JobState:
        secret.current().give()  # the hosts have it
        found, rest = {}, list(self._running_hosts)
        for name, hosts in self._meshes.items():
            found[name] = self._attached.attach(
                name, [(one.address, one.host.rpartition("@")[2]) for one in rest[: len(hosts)]]
            )
            self._attached.lease(found[name])
            del rest[: len(hosts)]
        return JobState(found)

    def _keep(self) -> None:
        """Let the hosts' programs outlive this one."""
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.keep()

    def _kill(self) -> None:
        self._attached.free()
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.hang_up()
        for connection in connections:
            connection.close()
        kept, self._running_hosts = ([] if connections else self._running_hosts), []
        left = [
            f"{one.host} (process {one.pid}): {said}"
            for one, (status, said) in zip(kept, self._asked("end", kept), strict=True)
            if status != 0
        ]
        if left:
            raise JobError(f"the programs of these hosts may still run: {'; '.join(left)}")

    def _ask(self, what: str) -> list[tuple[int, str]]:
        return self._asked(what, self._running_hosts)

    def _asked(self, what: str, running: Sequence[Running]) -> list[tuple[int, str]]:
        """What each of these hosts answers, all asked at once: a status and what it says."""
        programs = [
            self._start(one.host, [what, str(one.pid), str(one.started)]) for one in running
        ]
        answers = []
        for program in programs:
            try:
                _out, said = program.communicate(timeout=_ASK_SECONDS)
            except subprocess.TimeoutExpired:
                program.kill()
                _out, said = program.communicate()
            text = said.decode(errors="replace").strip()
            answers.append((program.returncode, text[-500:]))
        return answers

    def _wake(self) -> None:
        self._connections = []
        self._attached = AttachedHosts(kept=True)
