"""Addresses: what users may write, and what each refused one is told."""

from __future__ import annotations

import _socket
import sys

import pytest

from monarch._link import address
from monarch.errors import AddressError, UnsupportedAddressError


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
        ("tcp://*:5000", "all interfaces"),
        ("tcp://0.0.0.0:5000", "all interfaces"),
        ("tcp://[::]:5000", "all interfaces"),
        ("tcp://10.0.0.1:5000", "need TLS"),
        ("tcp://node7.cluster:5000", "need TLS"),
        ("tls://127.0.0.1:5000", "TLS"),
        ("metatls://host:5000", "metatls"),
        ("metatls-hostname://host:5000", "metatls-hostname"),
        ("quic://host:5000", "quic"),
        ("ipc://*", "needs a name"),
        ("tcp://127.0.0.1:5@tcp://*:5", "all interfaces"),
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


def test_the_name_of_this_host_passes_where_it_means_loopback(monkeypatch):
    monkeypatch.setattr(_socket, "gethostname", lambda: "box")
    monkeypatch.setattr(_socket, "getaddrinfo", lambda *_: [(2, 1, 6, "", ("127.0.1.1", 0))])
    assert address.parse("tcp://box:1").host == "box"
    monkeypatch.setattr(_socket, "getaddrinfo", lambda *_: [(2, 1, 6, "", ("10.0.0.9", 0))])
    with pytest.raises(UnsupportedAddressError, match="need TLS"):
        address.parse("tcp://box:1")


@pytest.mark.skipif(sys.platform != "linux", reason="abstract sockets are Linux's")
def test_every_proc_has_an_address_that_follows_from_its_id():
    found = address.parse(address.of_proc(0xABC))
    assert found.path.endswith("-0000000000000abc")
