"""The gate with real sockets: who gets a link, and who is refused."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from monarch._link import handshake
from monarch._link.address import parse
from monarch.errors import AddressError, LinkError, SecretError
from tests.monarch.link.harness import OTHER, drained, raw

_NOBODY = 65534


@pytest.mark.parametrize("where", ["abstract", "file", "tcp", "tcp6"])
def test_both_ends_get_one_link_and_frames_flow(process, name, tmp_path, where):
    text = {
        "abstract": name,
        "file": f"ipc://{tmp_path}/socket",
        "tcp": "tcp://127.0.0.1:0",
        "tcp6": "tcp://[::1]:0",
    }[where]
    a, at_a = process(1)
    b, at_b = process(2)
    bound = b.listen(parse(text))
    assert a.connect(bound, seconds=20) == 2
    at_a.link_to(2).sendall(b"ping")
    assert at_b.link_to(1).recv(4) == b"ping"
    at_b.link_to(1).sendall(b"pong")
    assert at_a.link_to(2).recv(4) == b"pong"


def test_who_linked_and_in_which_role_is_told(process, name):
    told = []
    b, at_b = process(2, role=handshake.HOST, linked=lambda *who: told.append(who))
    b.listen(parse(name))
    a, _ = process(1)
    a.connect(parse(name), role=handshake.CLIENT, seconds=20)
    at_b.link_to(1)
    b.close()
    assert told == [(1, handshake.CLIENT)]


@pytest.mark.report("112")
def test_who_dials_may_start_before_who_listens(process, name):
    a, _ = process(1)
    b, at_b = process(2)
    ended = threading.Event()
    results = []

    def done(*result):
        results.append(result)
        ended.set()

    a.dial(parse(name), done, seconds=30)
    a.dial(parse(name), done, peer=2, seconds=30)
    refused = threading.Event()
    a.dial(parse(name), lambda *_: refused.set(), peer=3, seconds=0)
    assert refused.wait(20)  # by now the first two have been tried as well
    assert not ended.is_set()
    b.listen(parse(name))
    at_b.link_to(1)
    assert ended.wait(20)
    assert results[0] == (2, None)


def test_nobody_there_ends_in_the_address_and_the_reason(process, name, tmp_path):
    a, _ = process(1)
    with pytest.raises(LinkError, match="Connection refused") as caught:
        a.connect(parse(name), seconds=0.05)
    assert caught.value.code == "unreachable"
    assert name in str(caught.value)
    with pytest.raises(LinkError, match="No such file"):
        a.connect(parse(f"ipc://{tmp_path}/none"), seconds=0)
    with pytest.raises(LinkError, match=r"tcp://127\.0\.0\.1:1: Connection refused"):
        a.connect(parse("tcp://127.0.0.1:1"), seconds=0)


def test_a_second_dial_finds_the_link_that_is_there(process, name):
    a, at_a = process(1)
    b, _ = process(2)
    b.listen(parse(name))
    assert a.connect(parse(name), seconds=20) == 2
    assert a.connect(parse(name), seconds=20) == 2
    assert a.connect(parse(name), peer=2, seconds=20) == 2
    assert list(at_a.links) == [2]


@pytest.mark.promise("N02")
def test_one_that_was_declared_dead_gets_no_link_and_the_next_one_does(process, name):
    a, at_a = process(1)
    a.listen(parse(name))
    at_a.fenced.add(2)
    b, at_b = process(2)
    with pytest.raises(LinkError) as caught:
        b.connect(parse(name), seconds=0.2)
    assert caught.value.code == "gone"
    assert not at_b.links
    c, _ = process(3)
    assert c.connect(parse(name), seconds=20) == 1
    at_a.link_to(3)
    assert list(at_a.links) == [3]


@pytest.mark.slow
def test_two_that_dial_each_other_at_once_end_with_one_link(process, name):
    for turn in range(40):
        low, at_low = process(10 + turn)
        high, at_high = process(1000 + turn)
        low.listen(parse(f"{name}-{turn}-low"))
        high.listen(parse(f"{name}-{turn}-high"))
        start = threading.Barrier(2)
        errors = []

        def call(gate, address, peer, start=start, errors=errors):
            start.wait()
            try:
                gate.connect(parse(address), peer=peer, seconds=20)
            except LinkError as error:
                errors.append(error)

        threads = [
            threading.Thread(target=call, args=(low, f"{name}-{turn}-high", 1000 + turn)),
            threading.Thread(target=call, args=(high, f"{name}-{turn}-low", 10 + turn)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        at_low.link_to(1000 + turn).sendall(b"x")
        at_high.link_to(10 + turn).sendall(b"y")
        assert at_high.link_to(10 + turn).recv(1) == b"x"
        assert at_low.link_to(1000 + turn).recv(1) == b"y"


def test_another_secret_is_told_to_both_sides_and_gets_no_link(process, name):
    a, at_a = process(1, secret=OTHER)
    b, at_b = process(2)
    b.listen(parse(name))
    start = time.monotonic()
    with pytest.raises(LinkError, match="holds another secret") as caught:
        a.connect(parse(name), seconds=30)
    assert time.monotonic() - start < 5
    assert caught.value.code == "secret"
    assert at_a.links == at_b.links == {}


def test_another_proc_than_the_one_asked_for_is_refused(process, name):
    a, _ = process(1)
    b, at_b = process(2)
    b.listen(parse(name))
    with pytest.raises(LinkError) as caught:
        a.connect(parse(name), peer=3, seconds=30)
    assert caught.value.code == "identity"
    assert at_b.links == {}


def unsafe():
    raise SecretError("the secret /x has mode 0644")


def test_a_secret_that_is_refused_ends_dials_and_keeps_the_door(process, name, capfd):
    a, _ = process(1, secret=unsafe)
    b, at_b = process(2)
    b.listen(parse(name))
    with pytest.raises(LinkError, match="mode 0644"):
        a.connect(parse(name), seconds=30)
    door = f"{name}-a"
    a.listen(parse(door))
    for _ in range(2):
        assert drained(raw(door)) == b""
    assert capfd.readouterr().err.count("no process can link to this one") == 1
    assert at_b.links == {}


def test_a_callback_that_raises_does_not_stop_the_others(process, name, capsys):
    a, _ = process(1)
    b, _ = process(2)
    b.listen(parse(name))

    def broken(*_):
        raise ValueError("not mine")

    a.dial(parse(f"{name}-nobody"), broken, seconds=0)
    assert a.connect(parse(name), seconds=30) == 2
    assert "not mine" in capsys.readouterr().err


def test_a_listener_that_is_no_process_of_ours_is_named(process, name):
    fake = socket.socket(socket.AF_UNIX)
    fake.bind("\0" + parse(name).path[1:])
    fake.listen()

    def answer():
        connection, _ = fake.accept()
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        drained(connection)

    server = threading.Thread(target=answer)
    server.start()
    a, _ = process(1)
    with pytest.raises(LinkError, match="no process of monarch"):
        a.connect(parse(name), seconds=30)
    server.join()
    fake.close()


def test_a_listener_that_never_answers_ends_the_dial(process, name, monkeypatch):
    monkeypatch.setattr(handshake, "SECONDS", 0.05)
    fake = socket.socket(socket.AF_UNIX)
    fake.bind("\0" + parse(name).path[1:])
    fake.listen()
    a, _ = process(1)
    with pytest.raises(LinkError, match="did not answer within") as caught:
        a.connect(parse(name), seconds=0.01)
    assert caught.value.code == "timeout"
    fake.close()


def _as_nobody(code, name):
    """Start a program under another user's id."""
    if os.geteuid() != 0:
        pytest.skip("only root can run a process under another uid")
    become = f"import os, socket, sys; os.setresgid(*[{_NOBODY}] * 3); "
    become += f"os.setresuid(*[{_NOBODY}] * 3); s = socket.socket(socket.AF_UNIX); "
    return subprocess.Popen(
        [sys.executable, "-c", f"{become}name = '\\0' + sys.argv[1]\n{code}", name],
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.promise("X01")
def test_a_peer_of_another_user_is_refused_before_a_byte_is_read(process, name, monkeypatch):
    read = []
    monkeypatch.setattr(handshake.Listener, "feed", lambda *_: read.append(1))
    b, at_b = process(2)
    b.listen(parse(name))
    code = "s.settimeout(20); s.connect(name); print(s.recv(100).hex(), s.recv(100).hex())"
    with _as_nobody(code, parse(name).path[1:]) as stranger:
        assert stranger.stdout.read().strip() == handshake.refusal("user").hex()
    assert read == []
    assert at_b.links == {}


def test_a_listener_of_another_user_is_not_trusted(process, name):
    """Abstract names are anybody's to take: who took it is asked before a byte is sent."""
    code = (
        "s.bind(name); s.listen(); print('ready', flush=True); c, _ = s.accept()\n"
        "print(c.recv(100).hex())"
    )
    with _as_nobody(code, parse(name).path[1:]) as squatter:
        assert squatter.stdout.readline() == "ready\n"
        a, _ = process(1)
        with pytest.raises(LinkError, match=f"belongs to uid {_NOBODY}") as caught:
            a.connect(parse(name), seconds=30)
        assert caught.value.code == "user"
        assert squatter.stdout.read().strip() == ""


def test_an_address_in_use_is_refused(process, tmp_path, name):
    taken = tmp_path / "file"
    taken.write_bytes(b"precious")
    b, _ = process(2)
    c, _ = process(3)
    tcp = b.listen(parse("tcp://127.0.0.1:0"))
    for text in (name, f"ipc://{tmp_path}/socket"):
        b.listen(parse(text))
    for text in (name, f"ipc://{tmp_path}/socket", f"ipc://{taken}", tcp.url):
        with pytest.raises(AddressError, match=r"cannot listen on .*in use"):
            c.listen(parse(text))
    assert taken.read_bytes() == b"precious"
    with pytest.raises(AddressError, match="No such file"):
        c.listen(parse(f"ipc://{tmp_path}/missing/socket"))


def test_closing_ends_every_dial(process, name):
    a, _ = process(1)
    results = []
    for peer in (0, 2, 2):
        a.dial(parse(name), lambda *result: results.append(result), peer=peer, seconds=60)
    a.close()
    a.dial(parse(name), lambda *result: results.append(result), seconds=60)
    assert [error.code for _, error in results] == ["closed"] * 4


def test_a_peer_known_to_be_gone_is_not_dialled_any_more(process, name):
    a, _ = process(1)
    ended = threading.Event()
    errors = []
    a.dial(parse(name), lambda _, error: (errors.append(error), ended.set()), peer=9, seconds=60)
    a.forget(9)
    assert ended.wait(20)
    assert errors[0].code == "closed"
    assert "gone" in str(errors[0])
