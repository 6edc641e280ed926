"""Addresses: what users may write, and what each refused one is told."""

from __future__ import annotations

import _socket
import sys

import pytest

from monarch._link import address, sockets
from monarch.errors import AddressError, LinkError, UnsupportedAddressError


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("ipc://@name", "ipc://@name"),
        ("unix:@name", "ipc://@name"),
        ("ipc:///run/x.sock", "ipc:///run/x.sock"),
        ("unix:/run/x.sock", "ipc:///run/x.sock"),
        ("unix:///run/x.sock", "ipc:///run/x.sock"),
        ("tcp://127.0.0.1:22222", "tcp://127.0.0.1:22222"),
        ("tcp://127.5.5.5:0", "tcp://127.5.5.5:0"),
        ("tcp://localhost:1", "tcp://localhost:1"),
        ("tcp://[::1]:65535", "tcp://[::1]:65535"),
    ],
)
def test_an_address_is_read_and_written(text, url):
    found = address.parse(text)
    assert found.url == str(found) == url
    assert found.dial is found
    assert found.proc == 0
    assert address.parse(found.url).url == url


def test_a_relative_path_is_made_absolute_where_it_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert address.parse("ipc://worker.sock").path == f"{tmp_path}/worker.sock"


def test_an_alias_gives_one_address_to_dial_and_one_to_bind():
    found = address.parse("tcp://localhost:5000@ipc://@worker")
    assert found.url == "ipc://@worker"
    assert found.dial.url == "tcp://localhost:5000"


def test_an_abstract_name_is_no_alias():
    found = address.parse("ipc://@a@b")
    assert found.path == "@a@b"
    assert found.dial is found


def test_a_proc_id_stands_before_the_address():
    assert address.parse("00000000000000ff@ipc://@w").proc == 255
    named = address.parse("worker-0@tcp://127.0.0.1:1")
    assert named.proc == address.proc_of_name("worker-0") != address.proc_of_name("worker-1")
    assert 0 < named.proc < 1 << 64


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("metatls://host:5000", "metatls"),
        ("metatls-hostname://host:5000", "metatls-hostname"),
        ("quic://host:5000", "quic"),
        ("ipc://*", "needs a name"),
    ],
)
def test_an_address_of_another_kind_is_named_and_not_implemented(text, said):
    with pytest.raises(UnsupportedAddressError, match=said) as caught:
        address.parse(text)
    assert isinstance(caught.value, NotImplementedError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ipc://@x",
        "name",
        "http://x",
        "ipc://",
        "ipc://@",
        "unix:",
        "tcp://",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:",
        "tcp://127.0.0.1:65536",
        "tcp://127.0.0.1:-1",
        "tcp://127.0.0.1:\u0661",
        "tcp:127.0.0.1:1",
        "tcp://::1:5",
        "ipc://@a\x00b",
        "@ipc://@x",
        "a b@ipc://@x",
        "ipc://@" + "x" * 200,
        "ipc:///" + "y" * 200,
    ],
)
def test_text_that_is_no_address_is_refused_with_what_to_write(text):
    with pytest.raises(AddressError) as caught:
        address.parse(text)
    assert not isinstance(caught.value, NotImplementedError)
    assert str(caught.value)


def test_something_other_than_text_is_refused():
    with pytest.raises(AddressError, match="not int"):
        address.parse(5)


@pytest.mark.parametrize(
    ("text", "off_host"),
    [
        ("tcp://127.0.0.1:1", False),
        ("tcp://localhost:1", False),
        ("tcp://[::1]:1", False),
        ("ipc://@x", False),
        ("tcp://10.0.0.1:5000", True),
        ("tcp://[fd00::7]:5000", True),
        ("tcp://node7.cluster:5000", True),
        ("tcp://*:5000", True),
        ("tls://127.0.0.1:5000", True),
    ],
)
def test_what_is_not_loopback_is_between_hosts_and_so_is_tls_everywhere(text, off_host):
    found = address.parse(text)
    assert found.off_host is off_host
    assert found.url == text
    assert address.parse(found.url).off_host is off_host


@pytest.mark.promise("N06")
def test_a_name_that_means_loopback_here_is_not_listened_on(monkeypatch):
    monkeypatch.setattr(_socket, "getaddrinfo", lambda *_: [(2, 1, 6, "", ("127.0.1.1", 0))])
    with pytest.raises(AddressError, match=r"box means 127\.0\.1\.1 .* no other host reaches"):
        sockets.listen(address.parse("tcp://box:1"))


def test_a_name_is_resolved_to_its_number_and_an_unknown_one_is_named(monkeypatch):
    both = [(10, 1, 6, "", ("fd00::9", 0, 0, 0)), (2, 1, 6, "", ("10.0.0.9", 0))]
    monkeypatch.setattr(_socket, "getaddrinfo", lambda *_: both)
    assert sockets.resolve(address.parse("tcp://box:1")).url == "tcp://10.0.0.9:1"
    assert sockets.resolve(address.parse("tcp://[::1]:1")).url == "tcp://[::1]:1"

    def unknown(*_):
        raise OSError(-2, "Name or service not known")

    monkeypatch.setattr(_socket, "getaddrinfo", unknown)
    with pytest.raises(LinkError, match="the name box is not known here: Name or service"):
        sockets.resolve(address.parse("tcp://box:1"))


def test_every_interface_is_bound_and_another_address_is_told():
    made, bound = sockets.listen(address.parse("tcp://10.0.0.7:0@tcp://*:0"))
    port = made.getsockname()[1]
    made.close()
    assert bound.dial.url == f"tcp://10.0.0.7:{port}"


@pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are Linux's")
def test_every_proc_has_an_address_that_follows_from_its_id():
    found = address.parse(address.of_proc(0xABC))
    assert found.path.endswith("-0000000000000abc")
