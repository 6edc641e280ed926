from __future__ import annotations

import copy
import pickle

import pytest

from monarch import errors
from monarch._failure import KINDS, Cause, MeshFailure, ranks_text

SEGV = MeshFailure(
    "signal",
    "trainers",
    (1,),
    host="n3",
    pid=4711,
    signal="SIGSEGV",
    actor="Trainer",
    endpoint="train_step",
    incarnation=2,
    time=86400.0,
    death="a1.2",
)


@pytest.mark.promise("S01")
@pytest.mark.parametrize("through", [copy.copy, lambda f: pickle.loads(pickle.dumps(f))])  # noqa: S301 - made here
def test_a_failure_survives_pickling_with_every_field(through):
    failure = SEGV.replace(
        causes=(Cause("ValueError", "beep", "Traceback\n  x\n"),),
        passed_by=("Manager 'm'",),
        node_id="hosts/0",
        message="why",
    )
    other = through(failure)
    assert other == failure
    assert [getattr(other, name) for name in MeshFailure.__slots__] == [
        getattr(failure, name) for name in MeshFailure.__slots__
    ]


def test_fields_of_a_later_release_are_left_out():
    rebuild, (fields,) = SEGV.__reduce__()
    assert rebuild({**fields, "colour": "red"}) == SEGV


@pytest.mark.report("78")
@pytest.mark.report("80")
def test_the_text_names_rank_process_signal_actor_and_endpoint():
    assert str(SEGV) == (
        "rank 1 of mesh 'trainers' was killed by signal SIGSEGV "
        "while Trainer.train_step was running [pid 4711, host n3]"
    )


@pytest.mark.report("78")
def test_the_text_gives_the_exit_code():
    failure = MeshFailure("exit", "w", (0, 2, 1, 7), exit_code=7, pid=12)
    assert str(failure) == "ranks 0-2, 7 of mesh 'w' ended with exit code 7 [pid 12]"


def test_an_idle_actor_is_named_without_an_endpoint():
    failure = MeshFailure("aborted", "w", (0,), actor="Trainer", message="enough")
    assert str(failure) == "rank 0 of mesh 'w' was aborted (Trainer): enough"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_line_of_its_own(kind):
    line = str(MeshFailure(kind, "w", (3,), signal="SIGKILL", exit_code=1))
    assert line.startswith("rank 3 of mesh 'w' ")
    assert "None" not in line


def test_an_unknown_kind_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"signal, exit, .*not 'gone'"):
        MeshFailure("gone", "w")


def test_the_report_gives_owners_and_the_chain_with_its_tracebacks():
    failure = SEGV.replace(
        causes=(
            Cause("RuntimeError", "outer", 'Traceback\n  File "a.py"\n'),
            Cause("ValueError", "beep"),
        ),
        passed_by=("Manager 'm'", "Root 'r'"),
    )
    assert failure.report() == (
        "rank 1 of mesh 'trainers' was killed by signal SIGSEGV "
        "while Trainer.train_step was running: RuntimeError: outer [pid 4711, host n3]\n"
        "  noticed 1970-01-02 00:00:00 UTC\n"
        "  incarnation 2: replaced that often before\n"
        "  not handled by Manager 'm'\n"
        "  not handled by Root 'r'\n"
        "    Traceback\n"
        '      File "a.py"\n'
        "  caused by ValueError: beep"
    )


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ((), "some rank"),
        ((4,), "rank 4"),
        ((4, 4), "rank 4"),
        ((5, 4), "ranks 4-5"),
        ((0, 1, 2, 9, 4), "ranks 0-2, 4, 9"),
    ],
)
def test_ranks_are_joined(ranks, text):
    assert ranks_text(ranks) == text


def test_a_lost_proc_raises_a_crash_and_a_failed_actor_a_supervision_error():
    crash = errors.call_failed(SEGV, (1,), "train_step")
    assert type(crash) is errors.ActorCrashError
    assert crash.failure == SEGV
    assert crash.ranks == (1,)
    assert crash.endpoint == "train_step"
    assert str(crash).startswith("train_step: rank 1 cannot answer; rank 1 of mesh 'trainers'")
    failed = MeshFailure("error", "w", (0,), causes=(Cause("ValueError", "beep", "Traceback: x"),))
    error = errors.call_failed(failed)
    assert type(error) is errors.SupervisionError
    assert error.ranks == (0,)
    assert str(error).endswith("ValueError: beep\n\nTraceback: x")
