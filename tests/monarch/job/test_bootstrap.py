"""Programs that processes are started as, and hosts by a name alone."""

from __future__ import annotations

import sys

import pytest

from monarch.actor import default_bootstrap_cmd, hosts_from_config, this_host
from tests.monarch.job.programs import Who


def test_the_default_program_is_this_interpreter():
    command = default_bootstrap_cmd()
    assert command.program == sys.executable
    assert command == default_bootstrap_cmd()
    assert hash(command) == hash(default_bootstrap_cmd())


def test_variables_are_added_to_a_copy():
    command = default_bootstrap_cmd()
    more = command.with_env({"FLAVOUR": "mint"}).with_env({"SIZE": "2"})
    assert more.env == {"FLAVOUR": "mint", "SIZE": "2"}
    assert command.env == {}
    assert more != command
    assert (more.program, more.args) == (command.program, command.args)


@pytest.mark.parametrize("each", [False, True])
def test_processes_are_started_as_it_says(each):
    command = default_bootstrap_cmd().with_env({"FLAVOUR": "mint"})
    given = (lambda point: command.with_env({"MINE": str(point["gpus"])})) if each else command
    procs = this_host().spawn_procs(per_host={"gpus": 2}, bootstrap_command=given)
    who = procs.spawn("who", Who)
    assert set(who.variable.call("FLAVOUR").get(60).values()) == {"mint"}
    found = list(who.variable.call("MINE").get(60).values())
    assert found == (["0", "1"] if each else [None, None])
    procs.stop().get(30)


def test_hosts_by_a_name_are_two_workers_here():
    hosts = hosts_from_config("trainers")
    assert dict(hosts.extent) == {"hosts": 2}
    assert hosts.initialized.get(60) is True
    again = hosts_from_config("trainers")
    assert again == hosts
    hosts.shutdown().get(60)
