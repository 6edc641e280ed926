"""Addresses of hosts by name."""

from __future__ import annotations

import pytest

from monarch.actor import this_proc
from monarch.spmd import SPMDActor
from monarch.tools.network import AddrType, get_ipaddr, get_sockaddr


@pytest.mark.parametrize(
    ("name", "kind", "address"),
    [
        ("127.0.0.1", AddrType.IPv4, "127.0.0.1"),
        ("127.0.0.1", AddrType.Default, "127.0.0.1"),
        ("::1", AddrType.IPv6, "::1"),
        ("::1", AddrType.Default, "::1"),
    ],
)
def test_an_address_of_the_wanted_type_is_found(name, kind, address):
    assert get_ipaddr(name, 80, kind) == address


def test_an_address_with_a_port_has_brackets_where_it_needs_them():
    assert get_sockaddr("127.0.0.1", 80) == "127.0.0.1:80"
    assert get_sockaddr("::1", 80) == "[::1]:80"


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("127.0.0.1", AddrType.IPv6, "host '127.0.0.1' has no IPv6 address that other hosts can"),
        ("169.254.1.1", AddrType.Default, r"has no address .* \(.*169\.254\.1\.1 is of one link"),
    ],
)
def test_a_host_without_such_an_address_is_named(name, kind, text):
    with pytest.raises(RuntimeError, match=text):
        get_ipaddr(name, 80, kind)


def test_what_is_no_type_of_address_is_refused():
    with pytest.raises(ValueError, match="not 'ipv4'"):
        get_ipaddr("127.0.0.1", 80, "ipv4")


def test_a_rank_gives_its_address_and_a_free_port():
    address, port = this_proc().spawn("spmd", SPMDActor).get_host_port.call_one(AddrType.IPv4).get()
    assert address.count(".") == 3
    assert 0 < port < 65536
