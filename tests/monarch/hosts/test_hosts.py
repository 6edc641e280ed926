"""Hosts on a network: attaching, calls in every direction, addresses, refusals."""

from __future__ import annotations

import signal

import pytest

EVERYWHERE = """
mesh = attached(*sys.argv[1:]).spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
pids = [pid for pid in mesh.pid.call().get(60).values()]
networks = [name for name in mesh.network.call().get(60).values()]
one, near, far = (mesh.slice(hosts=h, gpus=g) for h, g in ((0, 0), (0, 1), (1, 1)))
here = this_host().spawn_procs(per_host={"gpus": 1}).spawn("local", Who).slice(gpus=0)
own = here.pid.call_one().get(60)
tell(pids=pids, networks=networks, near=one.ask.call_one(near).get(60),
     far=one.ask.call_one(far).get(60), own=own, back=one.ask.call_one(here).get(60),
     out=here.ask.call_one(far).get(60), here=os.readlink("/proc/self/ns/net"))
inner = far.spawn_inside.call_one().get(60)
tell(inner=inner.pid.call_one().get(60), inner_asks=inner.ask.call_one(one).get(60),
     inner_asked=one.ask.call_one(inner).get(60))
data = os.urandom(5 << 20)
assert one.echo.call_one(data).get(60) == data
"""


@pytest.mark.parametrize("encrypted", [True, False])
def test_processes_of_all_hosts_and_of_the_program_call_each_other(hosts, encrypted):
    rig = hosts(2)
    variables = None if encrypted else {"MONARCH_INSECURE_PLAINTEXT": "1"}
    addresses = [rig.serve(host, variables=variables)[1] for host in rig.others]
    told = rig.run(EVERYWHERE, *addresses, variables=variables)
    assert len(set(told["pids"])) == 4
    assert len({told["here"], *told["networks"]}) == 3
    assert told["near"] == told["pids"][1]
    assert told["far"] == told["pids"][3] == told["out"]
    assert told["back"] == told["own"]
    assert told["inner_asked"] == told["inner"]
    assert told["inner_asks"] == told["pids"][0]


PORTS = """
from monarch.actor import Channel
who = attached(sys.argv[1]).spawn_procs().spawn("who", Who)
port, receiver = Channel.open()
who.send_back.broadcast(port)
tell(sent=receiver.recv().get(60), pid=who.pid.call_one().get(60))
"""


@pytest.mark.promise("N06")
@pytest.mark.parametrize("listen", ["tcp://[fd77::2]:0", "tcp://*:26600", "tcp://10.77.0.2:0"])
def test_a_host_serves_at_ipv6_at_every_interface_and_at_a_free_port(hosts, listen):
    rig = hosts(1)
    _program, address = rig.serve(rig.others[0], listen=listen)
    told = rig.run(PORTS, address.replace("[::]", "10.77.0.2"))
    assert told["sent"] == told["pid"]


REFUSED = """
began = time.monotonic()
try:
    attached(sys.argv[1]).initialized.get(60)
except Exception as error:
    tell(error=str(error), kind=type(error).__name__, seconds=time.monotonic() - began)
"""


@pytest.mark.promise("X01")
def test_another_secret_is_told_so(hosts, tmp_path):
    rig = hosts(1)
    _program, address = rig.serve(rig.others[0])
    other = tmp_path / "other"
    other.touch(0o600)
    other.write_bytes(b"o" * 32)
    for variables in ({}, {"MONARCH_INSECURE_PLAINTEXT": "1"}):
        told = rig.run(REFUSED, address, variables={"MONARCH_SECRET_FILE": str(other), **variables})
        wanted = "takes encrypted links only" if variables else "holds another secret"
        assert wanted in told["error"]
        assert told["kind"] == "LinkError"
        assert told["seconds"] < 10


def test_a_host_that_nobody_reaches_is_named_when_the_time_is_over(hosts):
    rig = hosts(1)
    variables = {"MONARCH_MESH_ATTACH_CONFIG_TIMEOUT": "2s"}
    told = rig.run(REFUSED, "tcp://10.77.0.2:26600", variables=variables)
    assert "nothing answers at tcp://10.77.0.2:26600: Connection refused" in told["error"]
    rig.others[0].cut()
    told = rig.run(REFUSED, "tcp://10.77.0.2:26600", variables=variables)
    assert "tcp://10.77.0.2:26600" in told["error"]
    assert told["seconds"] < 20


@pytest.mark.promise("N06")
def test_a_port_that_is_taken_is_named_and_nothing_is_left(hosts):
    rig = hosts(1)
    host = rig.others[0]
    program, address = rig.serve(host)
    second = rig.start(host, ["-m", "monarch", "serve", "--listen", address])
    out, err = second.communicate(timeout=60)
    assert second.returncode == 2
    assert out == ""
    assert f"cannot listen on {address}: Address already in use" in err
    assert host.pids() == [program.pid]


def test_a_program_of_another_kind_is_refused_and_the_host_goes_on(hosts):
    rig = hosts(1)
    _program, address = rig.serve(rig.others[0])
    code = (
        "import socket, sys\n"
        "for data in (b'GET / HTTP/1.1', bytes(24), b'MNRL' + bytes(20), b'\\x16\\x03\\x01'):\n"
        "    with socket.create_connection(('10.77.0.2', 26600), 10) as sock:\n"
        "        sock.sendall(data)\n"
        "        try: print(sock.recv(64))\n"
        "        except ConnectionResetError: print('reset')\n"
    )
    program = rig.start(rig.here, ["-c", code])
    _out, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    assert rig.run(PORTS, address)["pid"]


@pytest.mark.promise("X04")
def test_a_program_that_attached_listens_nowhere(hosts):
    rig = hosts(1)
    _program, address = rig.serve(rig.others[0])
    told = rig.run(
        PORTS + 'tell(listening=[line.split()[1] for line in open("/proc/self/net/tcp") '
        'if line.split()[3] == "0A"])',
        address,
    )
    assert told["listening"] == []


def test_a_host_ends_in_order_when_it_is_told_to(hosts):
    rig = hosts(1)
    program, address = rig.serve(rig.others[0])
    rig.run("tell(ended=str(attached(sys.argv[1]).shutdown().get(60)))", address)
    assert program.wait(60) == 0
    program, _address = rig.serve(rig.others[0])
    program.send_signal(signal.SIGTERM)
    assert program.wait(60) == 0


def test_hosts_are_namespaces_of_their_own(hosts):
    rig = hosts(1)
    code = "import socket; socket.socket().connect(('10.77.0.2', 1))"
    program = rig.start(rig.here, ["-c", code])
    assert "Connection refused" in program.communicate(timeout=60)[1]


_OTHER_RELEASE = """
import sys
from monarch._proc import agent
agent.version = lambda: "9.9"
from monarch.__main__ import main
main()
"""


def test_a_host_of_another_release_is_told_so(hosts):
    rig = hosts(1)
    host = rig.others[0]
    address = f"tcp://{host.address}:26600"
    served = rig.start(host, ["-c", _OTHER_RELEASE, "serve", "--listen", address], stderr=None)
    assert address in served.stdout.readline()
    told = rig.run(REFUSED, address)
    assert f"{address} runs monarch 9.9 and this program" in told["error"]
    assert "install the same release on both sides" in told["error"]
    assert told["kind"] == "LinkError"
