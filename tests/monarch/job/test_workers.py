"""Worker loops and clients that attach to them: either first, one after the other, refused ones."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import time

import pytest

from ci.rigs import ports
from monarch import config
from monarch._link import secret
from monarch._link.address import proc_of_name
from monarch.actor import (
    Channel,
    attach_to_workers,
    run_worker_loop_forever,
    run_worker_loop_until_shutdown,
    start_worker_loop_forever,
)
from monarch.errors import AddressError, LinkError, SecretError, UnsupportedAddressError
from tests.monarch.job.programs import Who, children, gone, start

_UNTIL = """
import sys
from monarch.actor import run_worker_loop_until_shutdown
run_worker_loop_until_shutdown(address=sys.argv[1], ca="trust_all_connections")
print("returned")
"""
_BACKGROUND = """
import sys
from monarch.actor import start_worker_loop_forever
future = start_worker_loop_forever(address=sys.argv[1], ca="trust_all_connections")
print("reachable", flush=True)
future.get()
sys.stdin.read()
"""
_CLIENT = """
import sys
from monarch.actor import attach_to_workers
from tests.monarch.job.programs import Who
hosts = attach_to_workers(ca="trust_all_connections", workers=[sys.argv[1]])
who = hosts.spawn_procs(per_host={"gpus": 2}).spawn("who", Who)
print(*who.pid.call().get(30).values(), flush=True)
sys.stdin.read()
"""


def attached(*addresses, **options):
    return attach_to_workers(ca="trust_all_connections", workers=list(addresses), **options)


def pids_on(hosts, count=1):
    procs = hosts.spawn_procs(per_host={"gpus": count})
    return procs, list(procs.spawn("who", Who).pid.call().get(30).values())


def test_processes_are_children_of_the_worker(worker, address):
    program = worker()
    hosts = attached(address)
    assert dict(hosts.extent) == {"hosts": 1}
    assert hosts.initialized.get(30) is True
    _, pids = pids_on(hosts, 2)
    assert set(pids) <= set(children(program.pid))
    hosts.shutdown().get(30)
    assert program.wait(30) == 0
    assert gone(pids, 20)


@pytest.mark.report("112")
@pytest.mark.parametrize("first", ["worker", "client"])
def test_either_may_start_first(worker, address, first):
    if first == "worker":
        worker()
    hosts = attached(address)
    ready = hosts.initialized
    if first == "client":
        assert not ready.done()
        worker()
    assert ready.get(60) is True
    hosts.shutdown().get(30)


@pytest.mark.report("83")
def test_processes_end_with_their_client_and_the_next_client_is_served(worker, address):
    program = worker()
    client = start(_CLIENT, address)
    pids = list(map(int, client.stdout.readline().split()))
    assert len(pids) == 2
    client.kill()
    client.communicate()
    assert gone(pids, 20)
    assert program.poll() is None
    hosts = attached(address)
    _, more = pids_on(hosts)
    assert not set(more) & set(pids)
    program.terminate()
    assert program.wait(30) == 0
    assert gone(more, 20)


@pytest.mark.report("83")
def test_a_client_that_ends_in_order_takes_its_processes_along(worker, address):
    worker()
    client = start(_CLIENT, address)
    pids = list(map(int, client.stdout.readline().split()))
    client.communicate("")
    assert client.returncode == 0
    assert gone(pids, 20)


def test_two_clients_at_once_keep_apart(worker, address):
    worker()
    other = start(_CLIENT, address)
    theirs = list(map(int, other.stdout.readline().split()))
    hosts = attached(address)
    _, ours = pids_on(hosts)
    other.kill()
    other.communicate()
    assert gone(theirs, 20)
    assert not gone(ours, 0.1)
    hosts.shutdown().get(30)


@pytest.mark.report("116")
def test_stop_frees_the_host_and_shutdown_ends_it(worker, address):
    program = worker()
    hosts = attached(address)
    _, first = pids_on(hosts, 2)
    hosts.stop().get(30)
    assert gone(first, 20)
    assert program.poll() is None
    again = attached(address)
    _, second = pids_on(again)
    assert not set(first) & set(second)
    again.shutdown().get(30)
    assert program.wait(30) == 0
    assert gone(second, 20)


def test_until_shutdown_returns_to_the_program(worker, address):
    program = worker(_UNTIL)
    attached(address).shutdown().get(30)
    assert program.communicate(timeout=30)[0] == "returned\n"
    assert program.returncode == 0


def test_in_the_background_a_shutdown_ends_the_program(worker, address):
    program = worker(_BACKGROUND)
    assert program.stdout.readline() == "reachable\n"
    attached(address).shutdown().get(30)
    assert program.wait(30) == 0


def test_several_workers_are_one_mesh_in_their_order(worker, address):
    programs = [worker(at=f"{address}-{i}") for i in range(3)]
    hosts = attached(*(f"{address}-{i}" for i in range(3)))
    procs = hosts.spawn_procs(per_host={"gpus": 2})
    who = procs.spawn("who", Who)
    pids = who.pid.call().get(30)
    for rank, program in enumerate(programs):
        here = {pids.item(hosts=rank, gpus=gpu) for gpu in range(2)}
        assert here <= set(children(program.pid))
    place = who.slice(hosts=1, gpus=0).place.call_one().get(30)
    assert place == {}
    hosts.shutdown().get(30)
    assert [program.wait(30) for program in programs] == [0, 0, 0]


@pytest.mark.parametrize("where", ["tcp", "file", "alias", "name"])
def test_every_kind_of_address_serves(worker, address, where, tmp_path, free_port):
    text = {
        "tcp": f"tcp://127.0.0.1:{free_port}",
        "file": f"ipc://{tmp_path}/worker",
        "alias": f"tcp://localhost:{free_port}@tcp://127.0.0.1:{free_port}",
        "name": f"worker-0@{address}",
    }[where]
    worker(at=text)
    hosts = attached(text)
    assert hosts.initialized.get(30) is True
    if where == "file":
        assert stat.S_IMODE((tmp_path / "worker").stat().st_mode) == 0o600
    if where == "name":
        assert hosts._refs()[0].proc == proc_of_name("worker-0")
    pids_on(hosts)
    hosts.shutdown().get(30)
    assert not (tmp_path / "worker").exists()


@pytest.fixture
def free_port():
    return ports.free_ports(1)[0]


@pytest.mark.promise("X01")
def test_a_client_with_another_secret_is_refused_and_told_so(worker, address, tmp_path):
    program = worker()
    secret = tmp_path / "secret"
    secret.write_bytes(os.urandom(32))
    secret.chmod(0o600)
    client = start(
        _CLIENT, address, variables={"MONARCH_SECRET_FILE": str(secret)}, stderr=subprocess.PIPE
    )
    _, errors = client.communicate(timeout=60)
    assert client.returncode != 0
    assert "holds another secret" in errors
    assert "was waited for" not in errors
    assert str(secret) in errors
    assert secret.read_bytes().hex() not in errors
    assert program.poll() is None


def test_a_worker_that_never_comes_is_named(address):
    with config.configured(mesh_attach_config_timeout="50ms"):
        hosts = attached(address, name="trainers")
    with pytest.raises(LinkError, match=rf"trainers 0: nothing answers at {address}"):
        hosts.initialized.get(30)
    with pytest.raises(
        LinkError, match=r"Connection refused.*mesh_attach_config_timeout says, 0\.05"
    ):
        hosts.spawn_procs()
    assert hosts.stop().get(30) is None
    with pytest.raises(RuntimeError, match="trainers 0"):
        hosts.shutdown().get(30)


def test_each_worker_that_never_comes_is_named_and_none_that_came(worker, address):
    worker()
    with config.configured(mesh_attach_config_timeout="2s"):
        hosts = attached(f"{address}-a", address, f"{address}-b", name="trainers")
    begun = time.monotonic()
    with pytest.raises(LinkError, match=r"trainers 0: .*; host trainers 2: ") as caught:
        hosts.spawn_procs()
    assert time.monotonic() - begun < 20
    assert "trainers 1" not in str(caught.value)
    assert hosts.slice(hosts=1).spawn_procs().spawn("who", Who).pid.call_one().get(30)


def test_stopping_hosts_that_were_never_reached_does_not_wait_for_them(address):
    hosts = attached(address)
    begun = time.monotonic()
    hosts.stop().get(30)
    assert time.monotonic() - begun < 20
    ended = hosts.shutdown()
    with pytest.raises(TimeoutError):
        ended.get(0.01)


def test_a_worker_that_comes_after_the_shutdown_is_ended(worker, address):
    hosts = attached(address)
    ended = hosts.shutdown()
    program = worker()
    ended.get(60)
    assert program.wait(60) == 0


def test_an_address_that_is_never_told_is_an_error_that_names_the_host():
    _port, receiver = Channel.open()
    with config.configured(mesh_attach_config_timeout="50ms"):
        hosts = attached(receiver.recv(), name="trainers")
    with pytest.raises(LinkError, match="trainers 0: the future of its address told none"):
        hosts.spawn_procs()


@pytest.mark.promise("S01")
def test_a_lost_worker_takes_its_processes_along_and_the_client_is_told(worker, address, failures):
    program = worker()
    hosts = attached(address)
    procs, pids = pids_on(hosts, 2)
    os.kill(program.pid, signal.SIGKILL)
    assert gone(pids, 20)
    told = [failures.get(timeout=20) for _ in range(2)]
    assert sorted(rank for failure in told for rank in failure.ranks) == [0, 1]
    assert {failure.pid for failure in told} == set(pids)
    procs.stop().get(30)


@pytest.mark.promise("S01")
def test_the_end_of_a_process_on_a_worker_is_told_once_with_its_cause(worker, address, failures):
    worker()
    procs, pids = pids_on(attached(address), 2)
    os.kill(pids[1], signal.SIGSEGV)
    failure = failures.get(timeout=20)
    assert (failure.ranks, failure.pid, failure.signal) == ((1,), pids[1], "SIGSEGV")
    procs.stop().get(30)
    assert failures.empty()


@pytest.mark.promise("X03")
def test_certificates_come_with_authorities_and_can_be_read(address):
    for call in (
        run_worker_loop_forever,
        run_worker_loop_until_shutdown,
        start_worker_loop_forever,
    ):
        for options in ({"ca": "/no/ca.pem"}, {"ca": "trust_all_connections", "private_key": "k"}):
            with pytest.raises(LinkError, match="private_key that of the certificate"):
                call(address=address, **options)
    with pytest.raises(LinkError, match=r"/no/key\.pem cannot be read"):
        attach_to_workers(ca=b"cert", private_key="/no/key.pem", workers=[address])


def test_addresses_of_another_system_are_refused_on_both_sides():
    with pytest.raises(UnsupportedAddressError):
        attached("metatls://host:1")
    with pytest.raises(UnsupportedAddressError):
        run_worker_loop_forever(address="metatls://host:1", ca="trust_all_connections")


@pytest.mark.promise("X01")
@pytest.mark.parametrize("address", ["tcp://*:5000", "tcp://10.1.1.1:5", "tls://127.0.0.1:5"])
def test_off_this_host_a_secret_has_to_be_given(address, monkeypatch):
    monkeypatch.setattr(secret, "_current", None)  # jobs of other tests have shared theirs
    with pytest.raises(SecretError, match=r"a secret has to be given.*MONARCH_SECRET_FILE"):
        attached(address)
    with pytest.raises(SecretError, match=r"a secret has to be given.*--secret-file"):
        run_worker_loop_forever(address=address, ca="trust_all_connections")


def test_no_worker_and_the_same_twice_are_refused(address):
    with pytest.raises(ValueError, match="workers is empty"):
        attached()
    with pytest.raises(ValueError, match=r"workers\[1\] and workers\[0\] are both"):
        attached(address, address)
    with pytest.raises(AddressError):
        attached("nonsense")
    with pytest.raises(TypeError, match=r"workers\[1\] is an address as text.*not int 3"):
        attached(address, 3)
    with pytest.raises(TypeError, match="workers is a list of addresses, not one"):
        attach_to_workers(ca="trust_all_connections", workers=address)


def test_a_future_of_an_address_is_waited_for(worker, address):
    from monarch._actor.future import Done  # noqa: PLC0415 - native code

    worker()
    hosts = attached(Done(address))
    assert hosts.initialized.get(30) is True
    hosts.shutdown().get(30)


def test_a_lost_process_is_replaced_on_its_worker(worker, address, failures):
    program = worker()
    procs, pids = pids_on(attached(address), 2)
    os.kill(pids[1], signal.SIGKILL)
    assert failures.get(timeout=20).ranks == (1,)
    procs.respawn([1]).get(60)
    more = list(procs.spawn("again", Who).pid.call().get(30).values())
    assert more[0] == pids[0]
    assert more[1] != pids[1]
    assert set(more) <= set(children(program.pid))
    procs.stop().get(30)


def test_what_processes_of_a_worker_print_comes_to_the_client(worker, address, capsys):
    worker()
    hosts = attached(address)
    procs = hosts.spawn_procs(per_host={"gpus": 2}, name="printers")
    asyncio.run(procs.logging_option(stream_to_client=True))
    procs.spawn("who", Who).say.call("hello").get(30)
    procs.stop().get(30)
    end = time.monotonic() + 20
    found = ""
    while found.count("hello") < 2 and time.monotonic() < end:
        found += capsys.readouterr().out
    assert sorted(found.split("\n")[:2]) == ["[printers 0] hello", "[printers 1] hello"]
    hosts.shutdown().get(30)


def test_an_actor_spawns_on_hosts_that_it_was_sent(worker, address):
    program = worker()
    hosts = attached(address)
    who = hosts.spawn_procs().spawn("who", Who)
    pids = who.spawn_on.call_one(hosts).get(60)
    assert len(set(pids)) == 2
    assert set(pids) <= set(children(program.pid))
    hosts.shutdown().get(30)
    assert gone(pids, 20)
