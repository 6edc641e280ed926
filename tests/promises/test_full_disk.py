"""Disks that are full: lines are lost and said to be, files are whole or as before, jobs go on."""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys

import pytest

from ci.rigs import disks
from monarch._job import stored
from monarch.errors import JobStateError
from monarch.job import ProcessJob, job_load
from tests.promises.programs import ENVIRONMENT, HEAD

LOST = "lines of processes are lost: standard output takes none (No space left on device)"
SIZE = 64 << 10

TALK = """
from monarch.actor import Actor, endpoint
class Talker(Actor):
    @endpoint
    def talk(self, lines):
        for _ in range(lines):
            print("x" * 99, flush=True)
        return lines
procs = this_host().spawn_procs(per_host={"gpus": 2})
if len(sys.argv) > 1:
    import asyncio
    asyncio.run(procs.logging_option(stream_to_client=True))
talkers = procs.spawn("talkers", Talker)
for _ in range(3):
    assert list(talkers.talk.call(2000).get(60).values()) == [2000, 2000]
procs.stop().get(60)
print("all done", file=sys.stderr, flush=True)
"""


@pytest.fixture
def on_small_disk(tmp_path):
    """`on_small_disk(script, *words)`: the end of a shell script, in a folder of a few KiB."""
    if disks.missing():
        pytest.skip(disks.missing())
    folder = tmp_path / "small"
    folder.mkdir()

    def run(script, *words):
        inside = ["sh", "-c", f'cd "$0" && {script}', str(folder), *words]
        command = disks.command(folder, SIZE, inside)
        options = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        return subprocess.run(command, env=ENVIRONMENT, check=False, timeout=120, **options)

    return run


@pytest.mark.promise("F03")
@pytest.mark.parametrize("streamed", [False, True])
def test_output_that_fills_the_disk_is_lost_with_one_warning_and_the_job_goes_on(
    on_small_disk, streamed
):
    words = ["streamed"] if streamed else []
    script = '"$@" > log; status=$?; stat -c "size %s" log >&2; exit $status'
    done = on_small_disk(script, sys.executable, "-c", HEAD + TALK, *words)
    assert "all done" in done.stderr
    # What is left in the interpreter's own buffer it cannot write either.
    assert done.returncode in ((0, 120) if streamed else (0,)), done.stderr
    assert done.stderr.count("lines of processes are lost") == 1, done.stderr
    assert LOST in done.stderr
    size = int(done.stderr.partition("size ")[2].split()[0])
    assert SIZE * 0.5 < size <= SIZE, "the disk was not filled"


JOB = """
from monarch.errors import JobStateError
from monarch.job import ProcessJob
try:
    ProcessJob({"trainers": 2}).state()
except JobStateError as error:
    print(error)
from monarch.testing.leaks import descendants
deadline = time.monotonic() + 20
while (left := dict(descendants(os.getpid()))) and time.monotonic() < deadline:
    time.sleep(0.05)
print("left:", len(left), os.listdir(".monarch"))
"""


@pytest.mark.promise("F03")
def test_a_job_that_cannot_be_stored_is_ended_and_leaves_no_file(on_small_disk):
    fill = "mkdir .monarch && dd if=/dev/zero of=full bs=1k 2>/dev/null"
    done = on_small_disk(f'{fill}; "$@"', sys.executable, "-c", HEAD + JOB)
    assert done.returncode == 0, done.stderr
    told, left = done.stdout.splitlines()
    assert told.endswith(".monarch/job_state.json cannot be written: No space left on device")
    assert left == "left: 0 []"


@contextlib.contextmanager
def room_for(size):
    """Files may grow to so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.promise("F03")
def test_a_file_for_which_there_is_too_little_room_is_as_it_was_before(tmp_path):
    path = tmp_path / "job.json"
    old, new = ProcessJob({"old": 1}), ProcessJob({"new": 1})
    old.dump(path)
    whole = len(stored.dumps(new))
    for size in [*range(10), *range(10, whole, 17), whole - 1]:
        with room_for(size), pytest.raises(JobStateError, match=r"job\.json cannot be written: "):
            new.dump(path)
        assert [file.name for file in tmp_path.iterdir()] == ["job.json"]
        assert job_load(path)._meshes == old._meshes
    with room_for(whole):
        new.dump(path)
    assert job_load(path)._meshes == new._meshes
