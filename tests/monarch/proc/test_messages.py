"""Messages between a process and its zygote arrive whole, in order, with their descriptors."""

from __future__ import annotations

import os
import socket

import pytest

from monarch._proc.messages import Messages


@pytest.fixture
def pair():
    ends = [Messages(end) for end in socket.socketpair()]
    yield ends
    for end in ends:
        end.close()


def drain(one, other, count):
    found = []
    while len(found) < count:
        one.flush()
        arrived, ended = other.receive()
        found += arrived
        assert not ended
    return found


def test_many_messages_of_any_size_arrive_in_order(pair):
    one, other = pair
    sent = [("m", n, b"x" * size) for n, size in enumerate([0, 1, 70000, 1_000_000, 3] * 3)]
    for message in sent:
        one.send(message)
    assert one.queued
    assert [message for message, _ in drain(one, other, len(sent))] == sent
    assert not one.queued


def test_descriptors_come_with_their_own_message(pair):
    one, other = pair
    pipes = [os.pipe() for _ in range(3)]
    one.send(("none",))
    one.send(("two", b"x" * 300_000), [pipes[0][1], pipes[1][1]])
    one.send(("one",), [pipes[2][1]])
    (_, none), (_, two), (_, last) = drain(one, other, 3)
    assert none == []
    for (reading, _), fd in zip(pipes, [*two, *last], strict=True):
        os.write(fd, b"!")
        os.close(fd)
        assert os.read(reading, 2) == b"!"
        assert os.read(reading, 2) == b""  # the sender keeps no copy
        os.close(reading)


def test_the_end_is_told_after_the_last_message(pair):
    one, other = pair
    one.send(("last",))
    one.close()
    assert other.receive() == ([(("last",), [])], True)
    with pytest.raises(BrokenPipeError):
        other.send(("anyone",))
