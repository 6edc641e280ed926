"""Tunnels by ssh that cannot be made; those that can are among the tests of SLURM's jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from monarch._job import tunnel
from monarch.errors import JobError
from tests.watching import alive


@pytest.mark.parametrize(
    ("seconds", "then", "why"),
    [(1.0, "exec sleep 60", "is not there after 1 s"), (60.0, "exit 255", "cannot be made")],
)
def test_the_program_of_a_tunnel_that_is_not_made_is_ended(
    tmp_path, monkeypatch, seconds, then, why
):
    program = tmp_path / "ssh"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\necho no route >&2\n{then}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(tunnel, "_SECONDS", seconds)
    tunnels = tunnel.Tunnels()
    try:
        with pytest.raises(JobError, match=rf"(?s)ssh to gateway {why}:.*no route"):
            tunnels.open("gateway", {"tcp://host:1": "host:1"})
        assert not alive(int(Path(tmp_path / "pid").read_text()))
    finally:
        tunnels.close()
