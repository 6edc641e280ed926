"""Conversions that meet each other, a kill, a full disk, or a very large file."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from port.hipify import convert
from tests.port.hipify.test_tree import CODE, CONVERTED, files_in, snapshot, write

REPOSITORY = Path(__file__).resolve().parents[3]


def start(source: Path, out: Path, **more: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "port.hipify", str(source), "-o", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ, PYTHONPATH=str(REPOSITORY)),
        **more,  # type: ignore[call-overload]
    )


def tree(root: Path, count: int) -> Path:
    return write(root / "in", {f"d{n % 7}/f{n}.cu": f"{CODE}// {n}\n" for n in range(count)})


def wanted(count: int) -> dict[str, bytes]:
    return {f"d{n % 7}/f{n}.cu": f"{CONVERTED}// {n}\n".encode() for n in range(count)}


@pytest.mark.report("9")
@pytest.mark.slow
def test_four_conversions_into_one_folder_at_once(tmp_path: Path) -> None:
    source = tree(tmp_path, 200)
    running = [start(source, tmp_path / "out") for _ in range(4)]
    for process in running:
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, output + errors
    assert files_in(tmp_path / "out") == wanted(200)
    assert {path.name for path in (tmp_path / "out/.hipify").iterdir()} == {
        *("manifest.json", "cache.json", ".gitignore")
    }


_KILLED_AT = """
import os, signal, sys
from pathlib import Path
from port.hipify import convert

step = int(sys.argv[3])
calls = 0

def watch(event, arguments):
    global calls
    if event in ("os.rename", "os.mkdir", "os.remove", "os.rmdir") or (
        event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_WRONLY
    ):
        calls += 1
        if calls == step:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
convert(Path(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_a_kill_at_any_step_leaves_whole_files_that_the_next_run_completes(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"a.cu": CODE, "d/b.cu": CODE, "gone.cu": CODE})
    old = {
        name: data.encode() for name, data in dict.fromkeys(("a.cu", "d/b.cu"), CONVERTED).items()
    }
    changed = CODE.replace("drop", "discard")
    killed = True
    step = 0
    while killed:
        step += 1
        out = tmp_path / f"out{step}"
        write(source, {"a.cu": CODE, "d/b.cu": CODE, "gone.cu": CODE})
        convert(source, out)
        write(source, {"a.cu": changed, "new.cu": CODE})
        (source / "gone.cu").unlink()
        done = subprocess.run(
            [sys.executable, "-c", _KILLED_AT, str(source), str(out), str(step)],
            env=dict(os.environ, PYTHONPATH=str(REPOSITORY)),
            check=False,
        )
        killed = done.returncode == -signal.SIGKILL
        new = old | {"a.cu": CONVERTED.replace("drop", "discard").encode(), "new.cu": old["a.cu"]}
        for name, data in files_in(out).items():
            assert data in (old.get(name), new.get(name), CONVERTED.encode()), (step, name)
        outcome = convert(source, out)
        assert outcome.ok, (step, outcome.conversion.findings)
        assert files_in(out) == new, step
        assert not [path for path in (out / ".hipify").iterdir() if "stage" in path.name]
        (source / "new.cu").unlink()
    assert step > 10


def test_a_full_disk_changes_nothing_and_says_so(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"a.cu": CODE})
    out = tmp_path / "out"
    convert(source, out)
    write(source, {"a.cu": CODE.replace("drop", "discard"), "b.txt": "x" * 100_000})
    before = files_in(out)
    records = snapshot(out / ".hipify")

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    process = start(source, out, preexec_fn=limit)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 3, output + errors
    assert "no space left" in errors
    assert "Traceback" not in errors
    assert files_in(out) == before
    assert snapshot(out / ".hipify") == records
    assert convert(source, out).ok


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"a.cu": CODE})
    (tmp_path / "closed").mkdir(mode=0o555)
    process = start(source, tmp_path / "closed/out")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "cannot be written" in errors


_MEASURED = """
import resource, sys, time
from tests.port.hipify.one_file import convert

convert(b"cudaFree(p);")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
data = eval(sys.argv[1])
start = time.process_time()
convert(data, "a.h")
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) * 1024 / len(data), time.process_time() - start)
"""


@pytest.mark.promise("B07")
@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        'b"int x = f(a, 1) + \\"s\\"; " * 430_000',
        'b"/*" + b"*a" * 5_000_000',
        "b'\"' + b\"\\\\\\\\x\" * 3_000_000 + b'\"'",
        'b"0x12, " * 1_700_000',
    ],
    ids=["code", "comment", "string", "table"],
)
def test_a_line_of_ten_megabytes_takes_ten_times_its_memory_at_most(data: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, data],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ, PYTHONPATH=str(REPOSITORY)),
    )
    times, _ = map(float, done.stdout.split())
    assert times <= 10


@pytest.mark.promise("B07")
@pytest.mark.slow
def test_time_grows_with_the_size_of_the_tree(tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        source = tree(tmp_path / str(count), count)
        start_time = time.process_time()
        convert(source, tmp_path / str(count) / "out")
        return time.process_time() - start_time

    seconds(10)
    one = seconds(150)
    assert seconds(300) <= 2.5 * one + 0.1
