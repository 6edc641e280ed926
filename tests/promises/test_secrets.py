"""Nothing listens where others can reach it, and nobody gets to read the secret."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from monarch._link import secret
from monarch.actor import ActorCrashError
from tests.promises.actors import Manager, Mortal

T = 60


def family():
    """This process and all below it."""
    from monarch.testing.leaks import descendants  # noqa: PLC0415 - as fixtures do

    return [os.getpid(), *dict(descendants(os.getpid()))]


def sockets_of(pid):
    """Inodes of a process's sockets; none if it has ended meanwhile."""
    found = set()
    with contextlib.suppress(OSError):
        for path in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(path.readlink())
                if target.startswith("socket:["):
                    found.add(target[8:-1])
    return found


def public_part(pid):
    """What others can read of a process; nothing if it has ended meanwhile."""
    try:
        return b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
    except OSError:
        return b""


def listening(table, state):
    """Inode and local address of listening sockets, from a table of /proc/net."""
    lines = Path(table).read_text().splitlines()[1:] if Path(table).exists() else []
    return {line.split()[9]: line.split()[1] for line in lines if line.split()[3] == state}


@pytest.mark.promise("X04")
def test_no_process_of_ours_listens_on_the_network(cluster):
    mesh = cluster(2)
    manager = mesh.spawn("manager", Manager, True)
    manager.hire.call(1).get(T)
    open_to_others = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        open_to_others.update(listening(table, "0A"))
    for table in ("/proc/net/udp", "/proc/net/udp6"):
        open_to_others.update(listening(table, "07"))
    pids = family()
    assert len(pids) >= 6  # this one, a zygote and two processes, and the same below each of them
    ours = set().union(*(sockets_of(pid) for pid in pids))
    assert ours
    assert ours & set(open_to_others) == set()


@pytest.mark.promise("X05")
def test_the_secret_is_in_no_argument_environment_error_pickle_or_output(cluster, capfd):
    import pickle  # noqa: PLC0415 - here alone

    mesh = cluster(2)
    workers = mesh.spawn("workers", Mortal)
    workers.pid.call().get(T)
    told = []
    with pytest.raises(ActorCrashError) as raised:
        workers.slice(procs=1).leave.call_one(3).get(T)
    failure = mesh.failures.wait(1, T)
    told += [str(raised.value), repr(raised.value), failure.report(), pickle.dumps(failure)]
    told += [pickle.dumps(workers), pickle.dumps(mesh.procs), repr(secret.current())]
    shown = [public_part(pid) for pid in family()]
    assert sum(b"PATH=" in part for part in shown) >= 3  # this process, a zygote and rank 0
    told += shown
    out, err = capfd.readouterr()
    told += [out, err]
    for form in forms():
        for text in told:
            data = text.encode() if isinstance(text, str) else text
            assert form not in data


def forms():
    """The secret as it could be written."""
    import base64  # noqa: PLC0415 - here alone

    value = secret_bytes()
    return [value, value.hex().encode(), base64.b64encode(value), repr(value).encode()[2:-1]]


def secret_bytes():
    with os.fdopen(secret.current().hand_down(), "rb") as pipe:
        return pipe.read()[:32]
