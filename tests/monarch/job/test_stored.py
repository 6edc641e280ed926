"""Jobs as JSON: what they hold comes back, and what else is in a file is refused."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monarch._job import stored
from monarch.errors import JobStateError
from monarch.job import JobState, JobTrait, job_load, job_loads


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    name: str
    ports: tuple[int, ...]


class Bag(JobTrait):
    """A job that holds whatever it is given."""

    def __init__(self, **held: Any) -> None:
        super().__init__()
        self.held = held

    def _create(self, client_script):
        pass

    def _state(self):
        return JobState({})

    def _kill(self):
        pass

    def can_run(self, spec):
        return isinstance(spec, Bag) and spec.held == self.held


class Careful(Bag):
    """A job that holds something only this process has."""

    def __init__(self) -> None:
        super().__init__(kept=1)
        self.lock = threading.Lock()

    def __getstate__(self):
        return {**super().__getstate__(), "lock": None}


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "text",
        -(1 << 70),
        0.1,
        float("inf"),
        [1, [2, "x"]],
        (1, (2,)),
        {"a": {"b": 1}},
        {1: "x", (2, 3): "y"},
        {"$tuple": [1]},
        {1, 2},
        frozenset({"a"}),
        b"\0\xff",
        Path("/some/where"),
        Node("n", (1, 2)),
        {"nodes": [Node("a", ()), Node("b", (3,))]},
    ],
    ids=repr,
)
def test_values_come_back_as_they_were(value):
    found = job_loads(Bag(value=value).dumps())
    assert type(found) is Bag
    assert found.held == {"value": value}
    assert type(found.held["value"]) is type(value)


def test_a_number_that_is_none_comes_back():
    (value,) = job_loads(Bag(v=float("nan")).dumps()).held.values()
    assert value != value  # noqa: PLR0124 - not a number


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(), inner)
        | st.dictionaries(st.integers(), inner)
        | st.lists(inner).map(tuple)
    ),
    max_leaves=20,
)


@given(_VALUES)
def test_any_nest_of_plain_values_comes_back(value):
    assert job_loads(Bag(value=value).dumps()).held == {"value": value}


def test_a_job_within_a_job_comes_back():
    found = job_loads(Bag(inner=Bag(x=(1,))).dumps())
    assert found.held["inner"].held == {"x": (1,)}


def test_the_text_is_json_with_the_class_and_the_fields_of_the_spec():
    document = json.loads(Bag(a=1).dumps())
    assert document["schema"] == 1
    assert document["class"].endswith(":Bag")
    assert document["fields"]["held"] == {"a": 1}


def test_what_cannot_be_stored_is_named():
    with pytest.raises(JobStateError, match=r"Bag\.held\['x'\]\[1\] holds a lock"):
        Bag(x=[1, threading.Lock()]).dumps()
    with pytest.raises(JobStateError, match="inside a function"):
        type("Local", (Bag,), {"__qualname__": "f.<locals>.Local"})().dumps()


def test_a_job_may_leave_out_what_only_it_has():
    assert job_loads(Careful().dumps()).lock is None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not JSON"),
        (b"{", r"not JSON.*; put it right, or end the job.s hosts if they run and remove it"),
        (b"[]", "holds no job"),
        (b"{}", "holds no job"),
        (b'{"schema": 2, "class": "a:b", "fields": {}}', '"schema" 2'),
        (b'{"schema": 1, "class": "nosuchmodule:b", "fields": {}}', "cannot find the class"),
        (b'{"schema": 1, "class": "os:nothing", "fields": {}}', "cannot find the class"),
        (b'{"schema": 1, "class": "", "fields": {}}', "cannot find the class"),
        (b'{"schema": 1, "class": "__main__:Gone", "fields": {}}', "move it to a module"),
        (b'{"schema": 1, "class": "os:path", "fields": {}}', "no class"),
        (b'{"schema": 1, "class": "os:PathLike", "fields": {}}', "not a job"),
        (b'{"schema": 1, "class": 5, "fields": {}}', "text"),
        (b'{"schema": 1, "class": "os:path"}', "fields"),
        (b"[" * 100_000, "not JSON"),
        (pickle.dumps({}), "is a pickle"),
    ],
)
def test_what_is_no_job_is_refused(data, said):
    with pytest.raises(JobStateError, match=said):
        job_loads(data)


@pytest.mark.parametrize(
    "value",
    [
        '{"$tuple": 1}',
        '{"$nothing": 1}',
        '{"$bytes": "x"}',
        '{"$dataclass": {"class": "os:PathLike", "fields": {}}}',
    ],
)
def test_a_field_that_is_none_of_ours_is_refused(value):
    text = Bag(x=0).dumps().decode().replace('"x": 0', f'"x": {value}')
    with pytest.raises(JobStateError):
        job_loads(text)


def test_a_file_is_for_its_owner_alone_and_written_whole(tmp_path):
    path = tmp_path / "new" / "state.json"
    Bag(a=1).dump(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    Bag(a=2).dump(path)
    assert job_load(path).held == {"a": 2}
    assert [child.name for child in path.parent.iterdir()] == ["state.json"]


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "state.json"
    Bag(a=1).dump(path)
    with pytest.raises(JobStateError):
        Bag(a=threading.Lock()).dump(path)
    assert job_load(path).held == {"a": 1}


def test_a_link_is_followed_and_stays(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("target.json")
    Bag(a=1).dump(link)
    assert link.is_symlink()
    assert job_load(tmp_path / "target.json").held == {"a": 1}


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_refused(tmp_path, mode):
    path = tmp_path / "state.json"
    Bag(a=1).dump(path)
    path.chmod(mode)
    with pytest.raises(JobStateError, match="names code to import"):
        job_load(path)


def test_a_file_of_another_user_is_refused(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    path = tmp_path / "state.json"
    Bag(a=1).dump(path)
    os.chown(path, 65534, -1)
    with pytest.raises(JobStateError, match="others"):
        job_load(path)


def test_a_missing_file_is_told_as_one(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no stored job here.*none'"):
        job_load(tmp_path / "none")


def test_one_at_a_time_holds_the_lock(tmp_path):
    order = []
    held = threading.Event()

    def other():
        held.wait()
        with stored.locked(tmp_path / "state.json"):
            order.append("second")

    thread = threading.Thread(target=other)
    thread.start()
    with stored.locked(tmp_path / "state.json"):
        held.set()
        thread.join(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
