"""The command `monarch serve`: its options, and what cannot be served."""

from __future__ import annotations

import json

import pytest

from tests.monarch.hosts.test_hosts import PORTS

ADDRESS = "tcp://10.77.0.2:26600"
_NO_SECRET = {"MONARCH_SECRET_FILE": None}
# A machine whose own name stands for loopback, as Debian's installer has it.
_NAMED = 'mount --bind "$0" /etc/hosts && exec "$@"'


def test_a_secret_by_option_is_that_of_the_host_and_its_processes(hosts):
    rig = hosts(1)
    _program, address = rig.serve(
        rig.others[0], "--secret-file", str(rig.secret), variables=_NO_SECRET
    )
    told = rig.run(PORTS, address)
    assert told["sent"] == told["pid"]


@pytest.mark.promise("N06", "X01")
@pytest.mark.parametrize(
    ("listen", "secret", "mode", "said"),
    [
        (ADDRESS, None, 0, "off this host, where a secret has to be given"),
        (ADDRESS, b"s" * 32, 0o644, "has mode 0644"),
        (ADDRESS, b"s" * 31, 0o600, "holds 31 bytes; a secret has 32 to 4096"),
        ("tcp://box7:26600", b"s" * 32, 0o600, "the name box7 means 127.0.1.1 on this host"),
        ("metatls://10.77.0.2:26600", b"s" * 32, 0o600, "own infrastructure; write "),
    ],
    ids=["none", "readable", "short", "loopback", "scheme"],
)
def test_what_cannot_be_served_ends_with_status_2_and_a_line_that_says_what_to_do(
    hosts, tmp_path, listen, secret, mode, said
):
    rig = hosts(1)
    host = rig.others[0]
    options = []
    if secret is not None:
        path = tmp_path / "given"
        path.touch(mode)
        path.write_bytes(secret)
        path.chmod(mode)
        options = ["--secret-file", str(path)]
    names = tmp_path / "names"
    names.write_text("127.0.0.1 localhost\n127.0.1.1 box7\n")
    program = rig.start(
        host,
        ["-m", "monarch", "serve", "--listen", listen, *options],
        _NO_SECRET,
        before=("unshare", "-m", "sh", "-c", _NAMED, str(names)),
    )
    out, err = program.communicate(timeout=60)
    assert (program.returncode, out) == (2, ""), err
    assert said in err
    assert len(err.splitlines()) == 1
    assert "Traceback" not in err
    assert host.pids() == []


def test_where_a_host_serves_is_one_json_object(hosts):
    rig = hosts(1)
    command = ["-m", "monarch", "serve", "--json", "--listen", ADDRESS, "--node-id", "n7"]
    program = rig.start(rig.others[0], command, stderr=None)
    told = json.loads(program.stdout.readline())
    assert (told["schema"], told["address"], told["node"]) == (1, ADDRESS, "n7")
    assert told["pid"] == program.pid
