"""Hosts that a program reaches by way of another one."""

from __future__ import annotations

import signal
import subprocess

import pytest

from tests.monarch.hosts.test_hosts import EVERYWHERE

_ATTACHED = """
from monarch.actor import attach
attach(sys.argv.pop(1))
"""


@pytest.mark.parametrize("encrypted", [True, False])
def test_hosts_that_only_the_gateway_reaches_are_used_as_if_they_were_reached(hosts, encrypted):
    """By the program and by processes of its own host, in both directions, with large messages."""
    rig = hosts(3)
    variables = None if encrypted else {"MONARCH_INSECURE_PLAINTEXT": "1"}
    addresses = [rig.serve(host, variables=variables)[1] for host in rig.others]
    for host in rig.others[1:]:
        host.cut_from(rig.here)
    told = rig.run(_ATTACHED + EVERYWHERE, *addresses, variables=variables)
    assert len(set(told["pids"])) == 4
    assert len({told["here"], *told["networks"]}) == 3
    assert told["near"] == told["pids"][1]
    assert told["far"] == told["pids"][3] == told["out"]
    assert told["back"] == told["own"]
    assert told["inner_asked"] == told["inner"]


_DIRECT = """
from monarch.actor import attach
from monarch._actor.process import process
attach(sys.argv[1])
attach(sys.argv[1])
try:
    attach(sys.argv[2])
except RuntimeError as error:
    tell(second=str(error))
who = attached(sys.argv[2]).spawn_procs().spawn("who", Who)
tell(network=who.network.call_one().get(60), led=sorted(process().gate._identity.led))
"""


def test_a_host_that_is_reached_from_here_is_dialled_directly(hosts):
    rig = hosts(2)
    addresses = [rig.serve(host)[1] for host in rig.others]
    told = rig.run(_DIRECT, *addresses)
    assert told["led"] == []
    assert f"is attached to {addresses[0]}, for good" in told["second"]


_SOMETHING = """
import socket, sys
with socket.create_server((sys.argv[1], 26600)) as server:
    print("listens", flush=True)
    while True:
        with server.accept()[0] as peer:
            peer.recv(1)
            peer.sendall(b"HTTP/1.1 400 Bad Request\\r\\nconnection: close\\r\\n\\r\\n")
"""


@pytest.mark.parametrize("who", ["a cluster with another secret", "something else"])
def test_an_address_that_is_another_machines_here_is_reached_by_the_gateway(hosts, tmp_path, who):
    """Private networks are all alike: what answers here need not be the host that is meant."""
    rig = hosts(2)
    addresses = [rig.serve(host)[1] for host in rig.others]
    theirs = rig.others[1].address
    subprocess.run(rig.here.command(["ip", "addr", "add", f"{theirs}/32", "dev", "lo"]), check=True)
    if who == "something else":
        assert rig.start(rig.here, ["-c", _SOMETHING, theirs]).stdout.readline()
    else:
        other = tmp_path / "other"
        other.touch(0o600)
        other.write_bytes(b"o" * 32)
        rig.serve(rig.here, listen=addresses[1], variables={"MONARCH_SECRET_FILE": str(other)})
    told = rig.run(_ATTACHED + _OTHER, *addresses)
    assert told["network"] != told["own"]
    assert told["led"] == [addresses[1]]


_OTHER = """
from monarch._actor.process import process
who = attached(sys.argv[1]).spawn_procs().spawn("who", Who)
network = who.network.call_one().get(60)
own = os.readlink("/proc/self/ns/net")
tell(network=network, own=own, led=sorted(process().gate._identity.led))
"""

_NAMED = """
who = attached("tcp://second.of.the.cluster:26600").spawn_procs().spawn("who", Who)
tell(network=who.network.call_one().get(60))
"""


def test_a_name_that_only_the_gateway_knows_is_looked_up_there(hosts, tmp_path):
    rig = hosts(2)
    names = tmp_path / "hosts"
    names.write_text(f"{rig.others[1].address} second.of.the.cluster\n")
    knows = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(names)]
    _gateway, address = rig.serve(rig.others[0], before=knows)
    rig.serve(rig.others[1])
    rig.others[1].cut_from(rig.here)
    assert rig.run(_ATTACHED + _NAMED, address)["network"]


_NOBODY = """
import monarch.config
monarch.config.configure(mesh_attach_config_timeout="3s")
try:
    attached(sys.argv[1]).initialized.get(60)
except LinkError as error:
    tell(error=str(error), code=error.code)
"""


def test_a_host_that_nobody_reaches_is_named_with_both_ways(hosts):
    rig = hosts(2)
    _program, gateway = rig.serve(rig.others[0])
    there = f"tcp://{rig.others[1].address}:26600"
    told = rig.run(_ATTACHED + _NOBODY, gateway, there)
    assert told["code"] == "unreachable"
    assert f"{there} (by way of {gateway}): the host agent is refused there" in told["error"]
    assert f"nothing answers at {there}: Connection refused" in told["error"]


_LOST = """
hosts = attached(*sys.argv[1:])
who = hosts.spawn_procs().spawn("who", Who)
who.pid.call().get(60)
tell(ready=True)
sys.stdin.readline()
told = [next_failure()[1] for _ in sys.argv[1:]]
tell(hosts=sorted(failure.node_id for failure in told))
hosts.stop()
"""


def test_the_end_of_the_gateway_is_the_end_of_what_is_reached_by_it(hosts):
    rig = hosts(2)
    gateway, address = rig.serve(rig.others[0])
    _program, other = rig.serve(rig.others[1], "--node-id", "other")
    rig.others[1].cut_from(rig.here)
    program = rig.begin(_ATTACHED + _LOST, address, other)
    assert "ready" in program.stdout.readline()
    gateway.send_signal(signal.SIGKILL)
    program.stdin.write("\n")
    program.stdin.flush()
    assert '"other"' in program.stdout.readline()
    program.communicate(timeout=60)


def test_nobody_is_led_on_without_the_secret(hosts):
    rig = hosts(2)
    _program, address = rig.serve(rig.others[0])
    code = (
        "import socket, sys\n"
        "from monarch._link import handshake, route, way\n"
        "from monarch._link.address import parse\n"
        "from monarch._link.secret import Secret\n"
        "other = Secret(b'o' * 32, 'mine')\n"
        "asker = way.Asker(other, 5, handshake.ON_THE_WAY, parse(sys.argv[1]))\n"
        "with socket.create_connection(('10.77.0.2', 26600), 10) as sock:\n"
        "    sock.sendall(route.route(0, route.ONWARD) + asker.start())\n"
        "    try:\n"
        "        while asker.need: sock.sendall(asker.feed(sock.recv(asker.need)))\n"
        "    except handshake.HandshakeError as error: print(error)\n"
    )
    program = rig.start(rig.here, ["-c", code, address])
    out, err = program.communicate(timeout=60)
    assert "another secret" in out, err


_TUNNEL = """
from monarch.actor import attach
try:
    attach("tcp://127.0.0.1:26600")
except LinkError as error:
    tell(error=str(error), code=error.code)
"""


def test_what_to_write_where_a_tunnel_leads_to_a_host_is_told(hosts):
    rig = hosts(1)
    rig.serve(rig.here, listen="tcp://*:26600")
    told = rig.run(_TUNNEL)
    assert told["code"] == "tunnel"
    assert "where a tunnel leads to it, write tls://" in told["error"]
    assert rig.run(_TUNNEL.replace("tcp:", "tls:")) == {}
