"""Strangers at the port of a host: thousands of connections that never say who they are."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from ci import project
from monarch._link import handshake, route
from tests.monarch.hosts.rig import PORT
from tests.monarch.hosts.test_hosts import PORTS
from tests.watching import resident

_CROWD = str(project.ROOT / "ci/rigs/crowd.py")
_TRAFFIC = """
who = attached(sys.argv[1]).spawn_procs().spawn("who", Who)
call = who.pid.call_one
def rate(seconds):
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        call().get(60)
        count += 1
    return count / seconds
rate(0.5)
before = rate(2)
print("ready", flush=True)
sys.stdin.readline()
tell(before=before, during=rate(4), failures=len(failures))
"""


def _processor_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.promise("X07")
@pytest.mark.slow
def test_ten_thousand_half_open_connections_keep_nobody_out_and_slow_nobody_down(hosts):
    rig = hosts(2)
    host, elsewhere = rig.others
    served, address = rig.serve(host)
    program = rig.begin(_TRAFFIC, address)
    for line in program.stdout:
        if line == "ready\n":
            break
    before = resident(served.pid)
    crowd = rig.start(elsewhere, [_CROWD, host.address, str(PORT)], stderr=None)
    assert crowd.stdout.readline() == "here\n"
    assert crowd.stdout.readline() == "again\n", "nobody is cut: the test shows nothing"
    began, spent = time.monotonic(), _processor_seconds(served.pid)
    out, _ = program.communicate("\n", timeout=60)
    took = _processor_seconds(served.pid) - spent
    assert took < 0.25 * (time.monotonic() - began), "strangers cost the agent too much"
    told = json.loads(out.splitlines()[-1])
    assert told["failures"] == 0
    # Whether both ends of a call are awake when it comes makes a factor of five on some machines.
    assert told["during"] > 0.1 * told["before"]
    began = time.monotonic()
    again = rig.run(PORTS, address)
    assert again["sent"] == again["pid"]
    assert time.monotonic() - began < 30
    assert resident(served.pid) - before < 32 << 20
    assert crowd.poll() is None


_SLOW = """
import socket, sys, time
sock = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
sock.sendall(bytes.fromhex(sys.argv[3]))
began = time.monotonic()
sock.settimeout(1)
for byte in bytes.fromhex(sys.argv[4]):
    try:
        sock.recv(10)
    except TimeoutError:
        sock.sendall(bytes([byte]))
    except ConnectionResetError:
        break
    else:
        break
print(time.monotonic() - began)
"""
_ROUTE = route.route(0, route.TLS)
_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32)  # of TLS, the beginning


@pytest.mark.promise("X07")
@pytest.mark.parametrize(
    ("first", "slowly"), [(b"", _ROUTE), (_ROUTE, _HELLO)], ids=["route", "tls"]
)
def test_who_sends_a_byte_a_second_is_cut_after_five(hosts, first, slowly):
    rig = hosts(1)
    host = rig.others[0]
    rig.serve(host)
    program = rig.start(rig.here, ["-c", _SLOW, host.address, str(PORT), first.hex(), slowly.hex()])
    out, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    assert handshake.SECONDS - 1 < float(out) < 4 * handshake.SECONDS
