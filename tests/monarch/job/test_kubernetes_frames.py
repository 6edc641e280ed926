"""Frames of a websocket, written as a client does and read as a server sends them."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monarch._job.kube.frames import BINARY, CLOSE, PING, FrameError, Reader, answer, frame, key

SIZES = [0, 1, 3, 4, 5, 125, 126, 127, 65535, 65536]


def sent(kind, data, *, last=True):
    """A frame as a server writes it."""
    size = len(data)
    head = bytes([(0x80 if last else 0) | kind])
    if size < 126:
        return head + bytes([size]) + data
    form, mark = ("!BH", 126) if size < 1 << 16 else ("!BQ", 127)
    return head + struct.pack(form, mark, size) + data


def unmasked(text):
    """What a server reads of a client's frame, by the rule of the standard."""
    size, start = text[1] & 0x7F, 2
    assert text[1] & 0x80
    if size == 126:
        (size,), start = struct.unpack_from("!H", text, 2), 4
    elif size == 127:
        (size,), start = struct.unpack_from("!Q", text, 2), 10
    mask, body = text[start : start + 4], text[start + 4 :]
    assert len(body) == size
    return bytes(byte ^ mask[index % 4] for index, byte in enumerate(body))


@pytest.mark.parametrize("size", SIZES)
def test_what_is_written_is_what_a_server_reads(size):
    data = bytes(index * 7 & 255 for index in range(size))
    text = frame(BINARY, data)
    assert text[0] == 0x80 | BINARY
    assert unmasked(text) == data


@given(st.lists(st.binary(max_size=300), max_size=6), st.integers(1, 50))
def test_messages_come_out_however_their_bytes_come_in(messages, step):
    text = b"".join(sent(BINARY, data) for data in messages)
    reader, found = Reader(), []
    for start in range(0, len(text), step):
        found += reader.feed(text[start : start + step])
    assert found == [(BINARY, data) for data in messages]


@pytest.mark.parametrize("size", SIZES)
def test_every_form_of_a_length_is_read(size):
    assert Reader().feed(sent(BINARY, b"x" * size)) == [(BINARY, b"x" * size)]


def test_a_message_in_parts_is_one_and_a_ping_may_come_between():
    parts = sent(BINARY, b"a", last=False) + sent(PING, b"p") + sent(0, b"b") + sent(CLOSE, b"")
    assert Reader().feed(parts) == [(PING, b"p"), (BINARY, b"ab"), (CLOSE, b"")]


@pytest.mark.parametrize(
    "text", [b"\x82\x80", b"\xc2\x00", b"\x82\x7f" + b"\xff" * 8, b"\x82\xff" + bytes(8)]
)
def test_what_no_server_sends_is_refused(text):
    with pytest.raises(FrameError):
        Reader().feed(text)


def test_the_answer_to_a_key_is_that_of_the_standard():
    assert answer("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert key() != key()
