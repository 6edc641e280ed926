"""What a gate holds: files of sockets, descriptors, a thread; and what it gives back."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import stat
import time
from pathlib import Path

import pytest

from monarch._link import handshake
from monarch._link.address import parse
from monarch.errors import LinkError
from tests.monarch.link.harness import SECRET, drained, raw


@pytest.mark.promise("F05")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of forks beside threads
def test_a_fork_holds_no_connection_in_the_making(process, name):
    silent = socket.socket(socket.AF_UNIX)
    silent.bind("\0" + parse(name).path[1:] + "-silent")
    silent.listen()
    a, _ = process(1)
    b, _ = process(2)
    b.listen(parse(name))
    with raw(name), silent:
        a.dial(parse(name + "-silent"), lambda *_: None, seconds=20)
        made = []
        end = time.monotonic() + 20
        while len(made) < 2:
            assert time.monotonic() < end
            made = [guest.channel.fileno() for guest in list(b._guests._guests.values())]
            made += [number for number, _, _ in a._dials.waits()]
        child = os.fork()
        if child == 0:
            a.leave()
            b.leave()
            os._exit(sum(Path(f"/proc/self/fd/{number}").exists() for number in made))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_socket_file_is_its_users_alone_and_goes_with_the_gate(process, tmp_path):
    path = tmp_path / "socket"
    b, _ = process(2)
    b.listen(parse(f"ipc://{path}"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    b.close()
    assert not path.exists()


def test_the_socket_file_of_a_dead_process_is_taken_over(process, tmp_path):
    path = f"{tmp_path}/socket"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(path)
    dead.listen()
    dead.close()
    b, _ = process(2)
    b.listen(parse(f"ipc://{path}"))
    a, _ = process(1)
    assert a.connect(parse(f"ipc://{path}"), seconds=20) == 2


def test_an_idle_gate_has_no_thread(process, name):
    b, at_b = process(2)
    b.listen(parse(name))
    a, _ = process(1)
    a.connect(parse(name), seconds=20)
    at_b.link_to(1)
    for gate in (a, b):
        thread = gate._thread
        if thread is not None:
            thread.join(20)
        assert gate._thread is None


@pytest.mark.promise("F01")
def test_out_of_descriptors_new_connections_wait_and_old_ones_live(process, name):
    a, at_a = process(1)
    b, at_b = process(2)
    b.listen(parse(name))
    a.connect(parse(name), seconds=20)
    at_b.link_to(1)
    late = socket.socket(socket.AF_UNIX)
    late.settimeout(20)
    side = handshake.Dialer(SECRET, 3, b"unix \0" + parse(name).path[1:].encode())
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.dup(0)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(taken) + 8, limits[1]))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(0))
        late.connect("\0" + parse(name).path[1:])
        late.sendall(side.start())
        with pytest.raises(LinkError, match="Too many open files"):
            a.connect(parse(f"{name}-other"), seconds=0.05)
        at_a.link_to(2).sendall(b"still")
        assert at_b.link_to(1).recv(5) == b"still"
        assert 3 not in at_b.links
    finally:
        for number in taken:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    while side.need:
        late.sendall(side.feed(late.recv(side.need)))
    at_b.link_to(3).sendall(b"in")
    assert late.recv(2) == b"in"
    late.close()


def test_links_and_refusals_leave_no_descriptor_behind(process, name):
    b, at_b = process(2)
    b.listen(parse(name))
    before = None
    for turn in range(6):
        a, at_a = process(100 + turn)
        a.connect(parse(name), seconds=20)
        at_b.link_to(100 + turn)
        stranger = raw(name)
        stranger.sendall(b"garbage!")
        drained(stranger)
        a.close()
        at_a.close()
        at_b.links.pop(100 + turn).close()
        thread = b._thread
        if thread is not None:
            thread.join(20)
        now = len(list(Path("/proc/self/fd").iterdir()))
        if turn == 1:
            before = now
    assert now == before
