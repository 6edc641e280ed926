"""Folders brought to hosts: what travels, what goes away, what is refused."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from monarch.actor import Actor, ActorError, endpoint, this_host
from monarch.job import ProcessJob
from monarch.tools.config.workspace import Workspace


class Importer(Actor):
    @endpoint
    def value(self, name: str) -> int:
        import importlib  # noqa: PLC0415 - in the process

        if os.environ["WORKSPACE_DIR"] not in sys.path:
            sys.path.insert(0, os.environ["WORKSPACE_DIR"])
        sys.dont_write_bytecode = True
        return importlib.import_module(name).VALUE


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "project"
    (folder / "inner").mkdir(parents=True)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_bytes(b"x")
    (folder / "settings_of_it.py").write_text("VALUE = 1\n")
    (folder / "inner" / "large.bin").write_bytes(os.urandom(20 << 20))
    (folder / "empty").write_bytes(b"")
    (folder / "run.sh").write_text("true\n")
    (folder / "run.sh").chmod(0o755)
    return folder


@pytest.fixture
def there(tmp_path):
    return tmp_path / "there"


@pytest.fixture
def hosts(there):
    job = ProcessJob({"hosts": 2}, env={"WORKSPACE_DIR": str(there)})
    yield job.state(cached_path=None).hosts
    job.kill()


def tree(folder):
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mode & 0o777)
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_a_folder_is_the_same_on_the_hosts_and_only_changes_travel(hosts, source, there):
    workspace = Workspace({source: ""})
    asyncio.run(_sync(hosts.slice(hosts=0), workspace))
    assert tree(there) == tree(source)
    assert not (there / "__pycache__").exists()
    large = there / "inner" / "large.bin"
    before = large.stat().st_ino
    (source / "empty").unlink()
    (source / "run.sh").write_text("false\n")
    asyncio.run(_sync(hosts.slice(hosts=0), workspace))
    assert tree(there) == tree(source)
    assert large.stat().st_ino == before


def test_running_processes_load_what_changed_again(hosts, source, there):
    host = hosts.slice(hosts=1)
    asyncio.run(_sync(host, Workspace({source: ""})))
    importer = host.spawn_procs().spawn("importer", Importer)
    assert importer.value.call_one("settings_of_it").get(60) == 1
    (source / "settings_of_it.py").write_text("VALUE = 22\n")
    asyncio.run(_sync(host, Workspace({source: ""}), auto_reload=True))
    assert importer.value.call_one("settings_of_it").get(60) == 22


def test_a_folder_keeps_its_name_unless_it_gets_another(hosts, source, there):
    asyncio.run(_sync(hosts.slice(hosts=0), Workspace([source])))
    assert tree(there / "project") == tree(source)


def test_a_host_without_a_place_for_it_says_what_to_set(source, monkeypatch):
    monkeypatch.delenv("WORKSPACE_DIR", raising=False)
    with pytest.raises(ActorError, match="WORKSPACE_DIR is not set on this host"):
        asyncio.run(_sync(this_host(), Workspace([source])))


def test_the_folder_itself_is_left_alone(source, monkeypatch):
    monkeypatch.setenv("WORKSPACE_DIR", str(source))
    before = tree(source)
    asyncio.run(_sync(this_host(), Workspace({source: ""})))
    assert tree(source) == before


@pytest.mark.parametrize(
    ("dirs", "text"),
    [
        ({"a": "../b"}, "a path below WORKSPACE_DIR is wanted"),
        ({"a": "/b"}, "a path below WORKSPACE_DIR is wanted"),
        (["x/a", "y/a"], "would both go to 'a'"),
    ],
)
def test_bad_places_are_refused(dirs, text):
    with pytest.raises(ValueError, match=text):
        Workspace(dirs)


def test_environments_are_refused_and_missing_folders_named(tmp_path):
    with pytest.raises(ValueError, match="with_python_executable"):
        Workspace([], env="env")
    with pytest.raises(ValueError, match="environments are not copied"):
        asyncio.run(_sync(this_host(), Workspace([]), conda=True))
    with pytest.raises(FileNotFoundError, match="is no folder"):
        asyncio.run(_sync(this_host(), Workspace([tmp_path / "nothing"])))


async def _sync(hosts, workspace, **options):
    await hosts.sync_workspace(workspace, **options)
