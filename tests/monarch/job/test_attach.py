"""What a program listens on, and programs that are attached to."""

from __future__ import annotations

import pytest

from monarch.actor import enable_transport
from monarch.errors import AddressError, UnsupportedAddressError
from tests.monarch.job.programs import start

_TRANSPORT = """
from monarch.actor import ChannelTransport, attach, enable_transport, this_host
from monarch._actor.process import process
enable_transport("tcp")
enable_transport(ChannelTransport.TcpWithLocalhost)
try:
    enable_transport("ipc")
except RuntimeError as error:
    print("two" if "has one" in str(error) else error)
print(process().address.rpartition(":")[0])
enable_transport("tcp")
try:
    attach("ipc://@nothing")
except RuntimeError as error:
    print("late" if "too late" in str(error) else error)
"""


def test_a_transport_is_chosen_once_and_first():
    program = start(_TRANSPORT)
    assert program.communicate(timeout=60)[0].split() == ["two", "tcp://127.0.0.1", "late"]


@pytest.mark.parametrize("name", ["tls", "metatls", "metatls-hostname", "quic", "tcp-hostname"])
def test_transports_that_leave_the_host_are_refused(name):
    with pytest.raises(UnsupportedAddressError, match="on this host alone"):
        enable_transport(name)


def test_what_is_no_transport_is_refused():
    with pytest.raises(AddressError, match="no transport: ipc"):
        enable_transport("pigeon")
    with pytest.raises(TypeError, match="not int"):
        enable_transport(5)


_ATTACH = """
import sys
from monarch.actor import attach
from monarch._actor.process import process
attach(sys.argv[1])
print(any(address == sys.argv[1] for address in process().addresses.values()))
"""


def test_attach_links_a_program_to_another(worker, address):
    worker()
    program = start(_ATTACH, address)
    assert program.communicate(timeout=60)[0] == "True\n"


_GATEWAY = """
import sys
from monarch.actor import Actor, attach, attach_to_workers, current_rank, endpoint
attach(sys.argv[1])
class Who(Actor):
    @endpoint
    def rank(self):
        return current_rank().rank
hosts = attach_to_workers(ca="trust_all_connections", workers=sys.argv[2:])
procs = hosts.spawn_procs(per_host={"gpus": 2})
print(list(procs.spawn("who", Who).rank.call().get(60).values()))
hosts.shutdown().get(60)
"""


def test_a_program_attaches_to_one_host_and_uses_the_others(worker, address):
    addresses = [f"{address}-{name}" for name in ("gateway", "a", "b")]
    for one in addresses:
        worker(at=one)
    program = start(_GATEWAY, *addresses)
    assert program.communicate(timeout=60)[0] == "[0, 1, 2, 3]\n"
