"""The secret: made once, for its user alone, and never seen."""

from __future__ import annotations

import copy
import io
import logging
import os
import pickle
import stat
import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest

from monarch._link import secret
from monarch.errors import SecretError

_KEY = bytes(range(32))


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user with an empty home, whose process has read no secret yet."""
    monkeypatch.setattr(secret, "_current", None)
    monkeypatch.delenv(secret.FILE_VARIABLE, raising=False)
    monkeypatch.delenv(secret.FD_VARIABLE, raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def _file(home):
    return home / ".local/state/monarch/secret"


def test_the_first_use_makes_a_file_of_the_user_alone(home):
    made = secret.current()
    path = _file(home)
    assert made.source == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert len(path.read_bytes()) == 32
    assert [child.name for child in path.parent.iterdir()] == ["secret"]


def test_the_second_use_reads_the_same(home, monkeypatch):
    first = secret.current().mac(b"x")
    monkeypatch.setattr(secret, "_current", None)
    assert secret.current().mac(b"x") == first


def _environment(**more):
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **more}


def test_processes_that_make_it_at_once_agree(home):
    code = "from monarch._link import secret; print(secret.current().mac(b'x').hex())"

    def run(_):
        return subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            text=True,
            env=_environment(HOME=str(home)),
        ).stdout

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(run, range(8)))) == 1
    assert [child.name for child in _file(home).parent.iterdir()] == ["secret"]


def test_a_given_file_is_used_instead(home, tmp_path, monkeypatch):
    path = tmp_path / "given"
    path.write_bytes(_KEY)
    path.chmod(0o400)
    monkeypatch.setenv(secret.FILE_VARIABLE, str(path))
    assert secret.current().mac(b"x") == secret.Secret(_KEY, "test").mac(b"x")
    assert not _file(home).exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o610])
def test_a_file_that_others_may_touch_is_refused(home, mode):
    secret.current()
    _file(home).chmod(mode)
    secret._current = None
    with pytest.raises(SecretError, match=f"{mode:04o}") as caught:
        secret.current()
    assert str(_file(home)) in str(caught.value)


def test_a_file_of_another_user_is_refused(home):
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    secret.current()
    os.chown(_file(home), 65534, -1)
    secret._current = None
    with pytest.raises(SecretError, match="belongs to uid 65534"):
        secret.current()


def test_a_folder_that_others_may_write_to_is_refused(home):
    secret.current()
    _file(home).parent.chmod(0o777)
    secret._current = None
    with pytest.raises(SecretError, match="nobody else may write"):
        secret.current()


def test_a_link_in_place_of_the_file_is_refused(home, tmp_path):
    secret.current()
    _file(home).rename(tmp_path / "elsewhere")
    _file(home).symlink_to(tmp_path / "elsewhere")
    secret._current = None
    with pytest.raises(SecretError, match="symbolic link"):
        secret.current()


@pytest.mark.parametrize("size", [0, 1, 31, 4097])
def test_a_file_of_the_wrong_size_is_refused(home, tmp_path, monkeypatch, size):
    path = tmp_path / "given"
    path.write_bytes(b"k" * size)
    path.chmod(0o600)
    monkeypatch.setenv(secret.FILE_VARIABLE, str(path))
    with pytest.raises(SecretError, match="32 to 4096 random bytes"):
        secret.current()


def test_what_is_no_file_is_refused(home, tmp_path, monkeypatch):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o600)
    for path, said in (
        (tmp_path / "none", "No such file"),
        (tmp_path, "not a regular file"),
        (fifo, "not a regular file"),
    ):
        monkeypatch.setenv(secret.FILE_VARIABLE, str(path))
        with pytest.raises(SecretError, match=said):
            secret.current()


def test_a_home_that_cannot_be_written_leaves_the_shared_folder(home, monkeypatch):
    blocked = home / "blocked"
    blocked.write_bytes(b"")  # a file where a folder should be, which stops even root
    shared = home / "shared"
    monkeypatch.setattr(
        secret, "user_paths", lambda: [f"{blocked}/state/monarch/secret", f"{shared}/secret"]
    )
    assert secret.current().source == f"{shared}/secret"


def test_a_child_reads_it_from_an_inherited_descriptor_once(home, monkeypatch):
    parent = secret.current()
    monkeypatch.setattr(secret, "_current", None)
    monkeypatch.setenv(secret.FD_VARIABLE, str(parent.hand_down()))
    child = secret.current()
    assert child.mac(b"x") == parent.mac(b"x")
    assert child.source == "the parent process"
    assert secret.FD_VARIABLE not in os.environ


@pytest.mark.parametrize("number", ["99999", "-1", "x", ""])
def test_a_descriptor_that_holds_none_is_refused(home, monkeypatch, number):
    monkeypatch.setenv(secret.FD_VARIABLE, number)
    with pytest.raises(SecretError, match="parent"):
        secret.current()


@pytest.mark.promise("X05")
def test_it_shows_in_no_text_and_no_pickle(caplog):
    held = secret.Secret(_KEY, "test")
    shapes = {_KEY.decode("latin-1"), _KEY.hex(), repr(_KEY), str(list(_KEY))}
    shown = "".join(traceback.format_exception(RuntimeError(held)))
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("x").debug("%s %r", held, vars(type(held)))
    text = f"{held} {held!r} {shown} {caplog.text} {dir(held)}"
    assert not any(shape in text for shape in shapes)
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy, pickle.Pickler(io.BytesIO()).dump):
        with pytest.raises(TypeError, match="cannot be pickled"):
            attempt(held)


@pytest.mark.promise("X05")
def test_a_process_that_was_handed_it_shows_it_in_neither_arguments_nor_environment(tmp_path):
    path = tmp_path / "given"
    path.write_bytes(os.urandom(32))
    path.chmod(0o600)
    held = secret.read(str(path))
    reader = held.hand_down()
    code = (
        "import os; from monarch._link import secret; s = secret.current();"
        "print(s.mac(b'x').hex()); print(dict(os.environ), open('/proc/self/cmdline').read(),"
        "open('/proc/self/environ', errors='replace').read())"
    )
    try:
        out = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            env=_environment(**{secret.FD_VARIABLE: str(reader)}),
            pass_fds=[reader],
        ).stdout
    finally:
        os.close(reader)
    assert out.startswith(held.mac(b"x").hex().encode())
    assert path.read_bytes() not in out
    assert path.read_bytes().hex().encode() not in out


def test_what_a_process_shows_to_other_hosts_follows_its_secret():
    from monarch._link import encryption  # noqa: PLC0415 - needs the build

    one, other = (secret.Secret(key * 32, "the test") for key in (b"1", b"2"))
    shown = encryption.context(one, ["10.0.0.1"])
    assert encryption.context(one, ["10.0.0.1"]) is shown
    assert encryption.context(other, ["10.0.0.1"]) is not shown
