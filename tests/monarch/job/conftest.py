from __future__ import annotations

import queue

import pytest

import monarch.actor


@pytest.fixture(autouse=True)
def failures(monkeypatch):
    """What nobody handled, in place of the end of the program."""
    found = queue.Queue()
    monkeypatch.setattr(monarch.actor, "unhandled_fault_hook", found.put, raising=False)
    return found
