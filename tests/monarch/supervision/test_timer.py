from __future__ import annotations

import threading
import time

import pytest

from monarch._supervision import timer as module
from monarch._supervision.timer import Timer


@pytest.fixture
def timer():
    threads = []

    def start(run, name):
        threads.append(threading.Thread(target=run, name=name))
        threads[-1].start()

    made = Timer(start)
    made.threads = threads
    yield made
    made.close()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_functions_are_called_in_the_order_in_which_they_are_due(timer):
    called, done = [], threading.Event()
    begun = time.monotonic()
    timer.after(0.06, lambda: (called.append("late"), done.set()))
    timer.after(0.02, lambda: called.append("early"))
    timer.after(0.02, lambda: called.append("after it"))
    assert done.wait(10)
    assert called == ["early", "after it", "late"]
    assert time.monotonic() - begun >= 0.06
    assert len(timer.threads) == 1


def test_nothing_is_called_after_the_end(timer):
    called = []
    timer.after(0.01, lambda: called.append(1))
    timer.close()
    timer.after(0.0, lambda: called.append(2))
    timer.threads[0].join(10)
    assert called in ([], [1])


def test_the_thread_ends_when_nothing_is_due_and_another_begins_when_something_is(
    timer, monkeypatch
):
    monkeypatch.setattr(module, "_IDLE_S", 0.01)
    done = threading.Event()
    timer.after(0.0, done.set)
    assert done.wait(10)
    timer.threads[0].join(10)
    assert not timer.threads[0].is_alive()
    again = threading.Event()
    timer.after(0.0, again.set)
    assert again.wait(10)
    assert len(timer.threads) == 2
