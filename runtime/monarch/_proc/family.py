"""The children of a zygote: who lives, who ended and how, and the orphans that an end leaves.

Every process leads a session and so a process group of its own, and adopts the orphans among its
own descendants. When it ends, its descendants come here, also those which left the group: a child
of the zygote that it did not start itself is an orphan of a dead process, and is killed.
"""

from __future__ import annotations

import _signal
import os
import time

from monarch._proc.launch import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Member:
    """A process that was started and has not been reaped."""

    __slots__ = ("forced", "id", "kill_at", "label", "pid", "started", "terminate_at")

    def __init__(self, proc: int, pid: int, label: str) -> None:
        self.id = proc
        self.pid = pid
        self.label = label
        self.started = time.monotonic()
        self.forced = False
        self.terminate_at: float | None = None
        self.kill_at: float | None = None

    def signal(self, number: int) -> None:
        """Signal its whole group; it alone as long as it has not made that group."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass


class Family:
    """All members of a zygote."""

    def __init__(self) -> None:
        self._members: dict[int, Member] = {}  # by pid
        self._pids: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._members)

    def add(self, proc: int, pid: int, label: str) -> None:
        """Note a child that was just started."""
        self._members[pid] = Member(proc, pid, label)
        self._pids[proc] = pid

    def find(self, procs: Iterable[int]) -> list[Member]:
        """The members with these ids that still live."""
        return [self._members[self._pids[proc]] for proc in procs if proc in self._pids]

    def reap(self) -> list[tuple[Member, int]]:
        """Members that ended, each with its wait status; orphans that ended are reaped with them.

        The groups of ended members are killed; call `kill_orphans` for what had left them.
        """
        ended = []
        while (found := _ended_child()) is not None:
            pid, status = found
            member = self._members.pop(pid, None)
            if member is not None:
                member.signal(_signal.SIGKILL)
            if status is None:
                _, status = os.waitpid(pid, 0)
            if member is not None:
                if self._pids.get(member.id) == pid:
                    del self._pids[member.id]
                ended.append((member, status))
        return ended

    def due(self, now: float) -> float | None:
        """Signal those whose time is up; seconds until the next is, None if there is none."""
        nearest: float | None = None
        for member in self._members.values():
            if member.kill_at is not None and now >= member.kill_at:
                member.kill_at = None
                member.terminate_at = None
                member.forced = True
                member.signal(_signal.SIGKILL)
            elif member.terminate_at is not None and now >= member.terminate_at:
                member.terminate_at = None
                member.signal(_signal.SIGTERM)
            for moment in (member.terminate_at, member.kill_at):
                if moment is not None and (nearest is None or moment < nearest):
                    nearest = moment
        return None if nearest is None else max(0.0, nearest - now)

    def kill_all(self, seconds: float) -> bool:
        """Kill and reap everybody, orphans included; whether all were gone in time."""
        end = time.monotonic() + seconds
        for member in self._members.values():
            member.signal(_signal.SIGKILL)
        self._members.clear()
        self._pids.clear()
        pause = 0.0005
        while True:
            self.kill_orphans()
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return True
            if time.monotonic() > end:
                return False
            time.sleep(pause)
            pause = min(pause * 2, 0.02)

    def kill_orphans(self) -> None:
        """Kill those children that are no members: a member that ended has left them."""
        for pid in children():
            if pid not in self._members:
                try:
                    os.kill(pid, _signal.SIGKILL)
                except ProcessLookupError:
                    pass


def kill_descendants(mark: str) -> None:
    """Kill what descends from a zygote that is gone, going by the environment it had.

    Its processes die with it; what these had started has gone to whoever adopts orphans.
    """
    wanted = f"{MARK}={mark}".encode()
    killed: set[int] = set()
    while True:
        found = {pid for pid in _processes() if wanted in _environment(pid).split(b"\0")}
        if found <= killed:
            return
        for pid in found - killed:
            try:
                os.kill(pid, _signal.SIGKILL)
            except OSError:
                pass  # it ended by itself
        killed |= found


def _environment(pid: int) -> bytes:
    """The environment that a process was started with; none of a foreign or ended one."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _processes() -> list[int]:
    """All processes; none where the system has no /proc to look in."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def _ended_child() -> tuple[int, int | None] | None:
    """A child that ended, and its status if that was taken already.

    Until it is, the child's number, which is its group's too, belongs to no other process.
    """
    try:
        if not hasattr(os, "waitid"):  # macOS before CPython 3.13
            pid, status = os.waitpid(-1, os.WNOHANG)
            return (pid, status) if pid else None
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    except ChildProcessError:
        return None
    return None if found is None else (found.si_pid, None)


def children() -> list[int]:
    """Children of this process; none where the system has no /proc to look in."""
    own = os.getpid()
    try:
        with open(f"/proc/self/task/{own}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        pass
    found = []
    for pid in _processes():
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                text = file.read()
        except OSError:
            continue
        # The name, in brackets, may hold anything; the state and the parent come after it.
        if int(text[text.rindex(b")") + 2 :].split()[1]) == own:
            found.append(pid)
    return found
