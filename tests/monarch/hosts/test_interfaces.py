"""Hosts with several interfaces, with IPv6 alone, or without a way out: where others reach them."""

from __future__ import annotations

import ipaddress
import subprocess

import pytest

from tests.monarch.hosts.test_hosts import EVERYWHERE

_ASK = "import sys; from monarch._job.interface import reachable; print(reachable(*sys.argv[1:]))"


def ip(host, *words):
    subprocess.run(["ip", "-n", host.name, *words], check=True)


def another_interface(host, name="aux0", address="10.99.0.1/24"):
    """One more interface, which leads nowhere."""
    ip(host, "link", "add", name, "type", "veth", "peer", "name", f"{name}x")
    for end in (name, f"{name}x"):
        ip(host, "link", "set", end, "up")
    if address:
        ip(host, "addr", "add", address, "dev", name)


def reachable(rig, host, *towards):
    program = rig.start(host, ["-c", _ASK, *towards])
    out, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    return out.strip()


@pytest.mark.promise("N06")
@pytest.mark.parametrize("listen", ["tcp://*:26600", "tcp://0.0.0.0:26600"])
def test_others_are_told_the_interface_by_which_a_host_is_reached(hosts, listen):
    rig = hosts(2)
    for host in (rig.here, *rig.others):
        another_interface(host)
    for host in rig.others:
        rig.serve(host, listen=listen)
    addresses = [f"tcp://{host.address}:26600" for host in rig.others]
    told = rig.run(EVERYWHERE, *addresses)
    assert told["far"] == told["pids"][3]
    assert told["inner_asked"] == told["inner"]


@pytest.mark.promise("N06")
def test_a_host_finds_the_interface_that_leads_to_who_asked_for_it(hosts):
    rig = hosts(1)
    host = rig.others[0]
    another_interface(host)
    assert reachable(rig, host, rig.here.address) == host.address
    assert reachable(rig, host, rig.here.address6) == host.address6
    assert reachable(rig, host, "10.99.0.7") == "10.99.0.1"
    assert reachable(rig, host, "no-such-name.invalid") == reachable(rig, host)


@pytest.mark.promise("N06")
def test_without_a_route_it_is_an_address_of_the_host_and_not_loopback(hosts):
    rig = hosts(1)
    host = rig.others[0]
    assert reachable(rig, host) == host.address
    ip(host, "addr", "del", f"{host.address}/24", "dev", "eth0")
    assert reachable(rig, host) == host.address6
    ip(host, "addr", "del", f"{host.address6}/64", "dev", "eth0")
    assert ipaddress.ip_address(reachable(rig, host)).is_loopback


@pytest.mark.promise("N06")
def test_hosts_without_ipv4_serve_and_call_each_other(hosts):
    rig = hosts(2)
    for host in (rig.here, *rig.others):
        ip(host, "addr", "flush", "dev", "eth0", "scope", "global")
        ip(host, "addr", "del", "127.0.0.1/8", "dev", "lo")
        ip(host, "addr", "add", f"{host.address6}/64", "dev", "eth0", "nodad")
    addresses = []
    for host in rig.others:
        _program, address = rig.serve(host, listen=f"tcp://[{host.address6}]:26600")
        addresses.append(address)
    told = rig.run(EVERYWHERE, *addresses)
    assert told["far"] == told["pids"][3]
    assert told["inner_asked"] == told["inner"]
