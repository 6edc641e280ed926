"""Processes start in their own place, and their ends are told with code or signal."""

from __future__ import annotations

import json
import os
import signal
import sys
from types import ModuleType

import pytest

from tests.monarch.proc.conftest import kill, parent_of, until
from tests.watching import alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def ask(procs, proc, text):
    procs.tell(proc, text)
    return json.loads(procs.hear(proc))


def test_processes_are_children_of_one_zygote_and_lead_their_sessions(procs):
    p = procs()
    ids = p.spawn(3)
    for id_ in ids:
        pid = ask(p, id_, "os.getpid()")
        assert p.pid(id_) == pid
        assert parent_of(pid) == p.spawner.zygote
        assert ask(p, id_, "os.getsid(0)") == pid
    assert parent_of(p.spawner.zygote) == os.getpid()


def test_a_process_ends_with_its_work(procs):
    p = procs()
    (id_,) = p.spawn()
    p.links[id_].shutdown(1)
    report = p.report(id_)
    assert (report.code, report.signal) == (0, None)
    assert report.pid
    assert 0 < report.seconds < 60


@pytest.mark.report("78")
def test_the_report_of_an_end_has_the_code_or_the_signal(procs):
    p = procs()
    coded, signaled = p.spawn(2)
    p.tell(coded, "leave(7)")
    p.tell(signaled, "os.kill(os.getpid(), 11)")
    assert p.report(coded).cause() == "exit code 7"
    assert p.report(signaled).cause() == "signal SIGSEGV"
    assert p.report(signaled).pid == p.pids[signaled]


def test_work_that_cannot_begin_gives_its_reason(procs):
    p = procs("failing")
    (id_,) = p.spawn()
    report = p.report(id_)
    assert report.code == 70
    assert report.cause() == "exit code 70: RuntimeError: no work today"


def test_a_body_that_cannot_be_imported_gives_its_reason(procs):
    p = procs("nowhere.to_be_found:work")
    (id_,) = p.spawn()
    assert "No module named 'nowhere'" in p.report(id_).reason


def test_the_death_of_the_zygote_is_the_death_of_its_processes(procs):
    p = procs()
    ids = p.spawn(2)
    pids = [ask(p, id_, "os.getpid()") for id_ in ids]
    zygote = p.spawner.zygote
    kill(zygote, signal.SIGKILL)
    assert p.spawner.wait(ids, 30) == []
    assert {p.reports[id_].signal for id_ in ids} == {9}
    assert f"zygote (pid {zygote}) was killed by signal SIGKILL" in p.reports[ids[0]].reason
    assert until(lambda: not any(map(alive, pids)), 1)
    (id_,) = p.spawn()
    assert parent_of(ask(p, id_, "os.getpid()")) == p.spawner.zygote != zygote


def test_a_zygote_that_was_killed_unnoticed_is_replaced_by_the_next_spawn(procs):
    p = procs()
    (first,) = p.spawn()
    pid = ask(p, first, "os.getpid()")
    zygote = p.spawner.zygote
    kill(zygote, signal.SIGKILL)
    assert until(lambda: not alive(pid), 10)  # by the death of its parent: that has come to its end
    (id_,) = p.spawn()
    assert parent_of(ask(p, id_, "os.getpid()")) == p.spawner.zygote != zygote
    assert p.report(first).signal == 9


def test_a_process_holds_no_descriptor_but_its_own(procs):
    p = procs()
    ids = p.spawn(3)
    held = [ask(p, id_, "descriptors()") for id_ in ids]
    others = [
        {(fd, name) for fd, name in each.items() if int(fd) > 2 and "/libffi.so" not in name}
        for each in held  # that library keeps its own file open, where ctypes is loaded
    ]
    assert [len(each) for each in others] == [1, 1, 1], others  # the link
    pipes = [{each["1"], each["2"]} for each in held]
    assert len(set.union(*pipes)) == 6


def test_modules_are_found_where_the_parent_finds_them(procs, tmp_path, monkeypatch):
    p = procs()
    (first,) = p.spawn()
    assert "No module" in ask(p, first, "__import__('beside_the_script').NAME")
    (tmp_path / "beside_the_script.py").write_text("NAME = 'found'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (second,) = p.spawn()
    assert ask(p, second, "__import__('beside_the_script').NAME") == "found"
    assert ask(p, second, "os.getcwd()") == str(tmp_path)
    assert ask(p, second, "sys.argv") == sys.argv


def test_the_parents_main_module_is_not_the_childs(procs):
    p = procs()
    (id_,) = p.spawn()
    assert ask(p, id_, "vars(sys.modules['__main__']).get('__file__')") is None


def test_a_process_has_the_environment_of_its_parent_at_that_time(procs, monkeypatch):
    p = procs()
    monkeypatch.setenv("SET_BEFORE", "1")
    (first,) = p.spawn()
    assert ask(p, first, "os.environ['SET_BEFORE']") == "1"
    monkeypatch.delenv("SET_BEFORE")
    monkeypatch.setenv("SET_LATER", "2")
    (second,) = p.spawn(environment={"MINE": "3", "HOME": None})
    names = "('SET_BEFORE', 'SET_LATER', 'MINE', 'HOME')"
    assert ask(p, second, f"[os.environ.get(n) for n in {names}]") == [None, "2", "3", None]


def test_rank_and_devices_are_set_before_modules_are_imported(procs, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    p = procs()
    ids = p.spawn(2, extent=(("gpus",), (2,)))
    seen = [ask(p, id_, "SEEN_AT_IMPORT") for id_ in ids]
    assert seen == [
        {"RANK": "0", "CUDA_VISIBLE_DEVICES": "4"},
        {"RANK": "1", "CUDA_VISIBLE_DEVICES": "5"},
    ]
    assert ask(p, ids[1], "os.environ['LOCAL_WORLD_SIZE']") == "2"


def test_an_interrupt_reaches_no_process_and_still_reaches_what_it_runs(procs):
    p = procs()
    (id_,) = p.spawn()
    pid = ask(p, id_, "os.getpid()")
    kill(pid, signal.SIGINT)
    assert ask(p, id_, "1 + 1") == 2
    assert ask(p, id_, "interrupted_child()") == -signal.SIGINT


def test_a_preload_that_starts_threads_means_programs_instead_of_forks(
    procs, tmp_path, monkeypatch, capfd
):
    (tmp_path / "threaded.py").write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    p = procs(preload=["threaded"])
    (id_,) = p.spawn(extent=(("gpus",), (1,)))
    assert ask(p, id_, "'threaded' in sys.modules") is False
    assert ask(p, id_, "os.environ['CUDA_VISIBLE_DEVICES']") == "0"
    pid = ask(p, id_, "os.getpid()")
    assert ask(p, id_, "os.getsid(0)") == pid
    (other,) = p.spawn()
    assert ask(p, other, "spec.rank") == 0
    p.spawner.receive()
    assert capfd.readouterr().err.count("has started 1 threads") == 1
    kill(p.spawner.zygote, signal.SIGKILL)
    assert until(lambda: not alive(pid), 1)


def test_a_preload_whose_threads_end_before_a_fork_is_forked_with(
    procs, tmp_path, monkeypatch, capfd
):
    (tmp_path / "pooled.py").write_text(
        "import os, threading\n"
        "ended = threading.Event()\n"
        "thread = threading.Thread(target=ended.wait, daemon=True)\n"
        "thread.start()\n"
        "os.register_at_fork(before=lambda: (ended.set(), thread.join()))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    p = procs(preload=["pooled"])
    (id_,) = p.spawn()
    assert ask(p, id_, "'pooled' in sys.modules") is True
    p.spawner.receive()
    assert "threads" not in capfd.readouterr().err


def test_a_preload_that_fails_is_told_and_stops_nothing(procs, capfd):
    p = procs(preload=["not_to_be_found"])
    (id_,) = p.spawn()
    assert ask(p, id_, "1") == 1
    p.spawner.receive()
    assert "cannot preload not_to_be_found: ModuleNotFoundError" in capfd.readouterr().err


def test_what_several_processes_share_is_imported_once_before_them_and_not_for_one(procs):
    alone, several = procs(shared=["colorsys"]), procs(shared=["colorsys"])
    (id_,) = alone.spawn()
    assert ask(alone, id_, "'colorsys' in sys.modules") is False
    assert [ask(several, each, "'colorsys' in sys.modules") for each in several.spawn(2)] == [
        True,
        True,
    ]


def test_modules_of_the_standard_library_are_shared_and_none_of_the_programs(monkeypatch):
    from monarch._proc.surroundings import standard_modules  # noqa: PLC0415 - needs the build

    monkeypatch.setitem(sys.modules, "colorsys", ModuleType("colorsys"))
    sys.modules["colorsys"].__file__ = "/home/user/colorsys.py"
    found = standard_modules()
    assert {"os", "json", "json.decoder"} <= set(found)
    assert not {"colorsys", "pytest", "__main__", "tests"} & set(found)


def test_a_zygote_that_began_ahead_is_the_one_that_starts_processes(procs):
    from monarch._proc import launch  # noqa: PLC0415 - needs the build

    launch.take().messages.close()  # of tests before this one
    launch._begun = False
    launch.ahead()
    begun = launch._waiting.pid
    launch.ahead()
    p = procs()
    (id_,) = p.spawn()
    assert ask(p, id_, "os.getppid()") == begun == p.spawner.zygote


def test_a_command_is_run_with_the_environment_and_becomes_the_process(procs):
    p = procs()
    run = (
        "import os, sys; os.environ['BY'] = 'command'; from monarch._proc.child import main; main()"
    )
    (id_,) = p.spawn(
        command=[sys.executable, "-c", run],
        environment={"PYTHONPATH": os.pathsep.join(sys.path)},
        extent=(("gpus",), (1,)),
    )
    assert ask(p, id_, "[os.environ[n] for n in ('BY', 'RANK', 'CUDA_VISIBLE_DEVICES')]") == [
        "command",
        "0",
        "0",
    ]
    assert ask(p, id_, "os.getpid()") == p.pid(id_)


def test_a_command_that_does_not_exist_is_named(procs):
    p = procs()
    (id_,) = p.spawn(command=["/no/such/program"])
    assert "cannot run bootstrap_command '/no/such/program'" in p.report(id_).reason


def test_a_process_is_bound_to_processors(procs):
    allowed = sorted(os.sched_getaffinity(0))
    p = procs()
    (id_,) = p.spawn(bind={"cpus": str(allowed[-1])})
    assert ask(p, id_, "sorted(os.sched_getaffinity(0))") == [allowed[-1]]


def test_processors_that_are_not_there_are_named(procs):
    p = procs()
    (id_,) = p.spawn(bind={"physcpubind": "60000"})
    assert "leaves no processor this process may run on" in p.report(id_).reason


def test_a_binding_that_cannot_be_meant_starts_nothing(procs):
    p = procs()
    with pytest.raises(ValueError, match="unknown key 'cpu'"):
        p.spawn(bind={"cpu": "1"})
    assert p.spawner.live() == []


@pytest.mark.promise("F05")
def test_a_fork_of_the_parent_does_not_keep_its_processes_alive(procs):
    p = procs()
    (id_,) = p.spawn()
    pid = ask(p, id_, "os.getpid()")
    reading, writing = os.pipe()
    fork = os.fork()
    if fork == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    p.spawner.close()
    assert not alive(pid)
    assert alive(fork)
    os.close(writing)
    os.waitpid(fork, 0)
    os.close(reading)
