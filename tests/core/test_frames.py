"""Frames through `monarch._core`: what Python sends is what Python gets, without copies."""

from __future__ import annotations

import array
import contextlib
import ctypes
import gc
import pickle
import resource
import socket
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monarch.errors import FrameError, MonarchError

PARTS = st.lists(st.binary(max_size=200), max_size=5)


def joined(pieces) -> bytes:
    return b"".join(bytes(piece) for piece in pieces)


def contents(frame) -> tuple[bytes, list[bytes]]:
    return bytes(frame.message), [bytes(buffer) for buffer in frame.buffers]


def cut(stream: bytes, sizes: list[int]) -> list[bytes]:
    """`stream` in pieces of the given sizes, over and over."""
    pieces, start, turn = [], 0, 0
    while start < len(stream):
        size = sizes[turn % len(sizes)]
        pieces.append(stream[start : start + size])
        start, turn = start + size, turn + 1
    return pieces


@given(
    frames=st.lists(st.tuples(st.binary(max_size=300), PARTS, st.booleans()), max_size=6),
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=6),
    kind=st.integers(0, 255),
    first=st.integers(0, 2**64 - 10),
)
def test_any_frames_arrive_as_sent_whatever_the_chunks(core, frames, sizes, kind, first):
    stream = b"".join(
        joined(core.encode(message, parts, kind=kind, sequence=first + n, checksum=checksum))
        for n, (message, parts, checksum) in enumerate(frames)
    )
    decoder = core.Decoder(first_sequence=first)
    received = [frame for piece in cut(stream, sizes) for frame in decoder.feed(piece)]
    assert [contents(frame) for frame in received] == [(m, p) for m, p, _ in frames]
    assert [frame.sequence for frame in received] == [first + n for n in range(len(frames))]
    assert [frame.checksummed for frame in received] == [checksum for *_, checksum in frames]
    assert {frame.kind for frame in received} <= {kind}
    assert decoder.pending == 0
    assert decoder.expected_sequence == first + len(frames)


def test_encoding_hands_back_the_callers_own_objects(core):
    message, buffer, numbers = b"message", bytearray(b"buffer"), array.array("d", [1.0, 2.0])
    pieces = core.encode(message, [buffer, b"", numbers])
    assert any(piece is message for piece in pieces)
    assert any(piece is buffer for piece in pieces)
    assert any(piece is numbers for piece in pieces)


def test_the_same_object_as_message_and_twice_as_buffer(core):
    part = b"the same"
    (frame,) = core.Decoder().feed(joined(core.encode(part, [part, part])))
    assert contents(frame) == (part, [part, part])


def test_a_frame_whole_in_a_bytes_object_is_a_view_into_it(core):
    data = joined(core.encode(b"message", [bytes(1000)]))
    (frame,) = core.Decoder().feed(data)
    start = _address(data)
    for view in (frame.message, *frame.buffers):
        assert start <= _address(view) < start + len(data)
        assert view.readonly


def _address(buffer) -> int:
    class PyBuffer(ctypes.Structure):
        _fields_ = (
            ("buf", ctypes.c_void_p),
            ("rest", ctypes.c_byte * 128),
        )

    view = PyBuffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(buffer), ctypes.byref(view), 0)
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))
    return view.buf


def test_views_outlive_the_frame_the_decoder_and_the_input(core):
    data = joined(core.encode(b"message", [b"first", b"second"]))
    whole = core.Decoder().feed(data)[0].buffers[1]
    decoder = core.Decoder()
    assert decoder.feed(data[:40]) == []
    gathered = decoder.feed(data[40:])[0].buffers[1]
    del data, decoder
    gc.collect()
    assert (bytes(whole), bytes(gathered)) == (b"second", b"second")


def test_the_input_is_let_go_with_the_last_view(core):
    data = joined(core.encode(b"message"))
    before = sys.getrefcount(data)
    frame = core.Decoder().feed(data)[0]
    view = frame.message
    assert sys.getrefcount(data) > before
    del frame
    assert sys.getrefcount(data) > before
    del view
    assert sys.getrefcount(data) == before


def test_a_changed_bytearray_does_not_change_a_frame_that_came_from_it(core):
    data = bytearray(joined(core.encode(b"message")))
    (frame,) = core.Decoder().feed(data)
    data[-7:] = b"egassem"
    data.clear()  # nothing holds its memory
    assert bytes(frame.message) == b"message"


def test_pickles_buffers_travel_beside_their_pickle(core):
    sent = {"numbers": pickle.PickleBuffer(array.array("q", range(1000))), "name": "x"}
    buffers: list[pickle.PickleBuffer] = []
    message = pickle.dumps(sent, protocol=5, buffer_callback=buffers.append)
    one, other = socket.socketpair()
    with one, other:
        one.sendmsg(core.encode(message, buffers, checksum=True))
        decoder, frames = core.Decoder(require_checksums=True), []
        while not frames:
            frames = decoder.feed(other.recv(777))
    (frame,) = frames
    received = pickle.loads(frame.message, buffers=frame.buffers)  # noqa: S301 - made above
    assert received["name"] == "x"
    assert memoryview(received["numbers"]).cast("q").tolist() == list(range(1000))


def test_what_cannot_be_sent_is_refused_with_both_sizes(core):
    with pytest.raises(FrameError, match=r"11 bytes .* limit of 10") as raised:
        core.encode(b"x" * 11, limit=10)
    assert raised.value.code == "limit"
    assert isinstance(raised.value, MonarchError)
    with pytest.raises(FrameError, match="at most 65535"):
        core.encode(b"", [b""] * 65536)
    with pytest.raises(TypeError):
        core.encode("text")
    with pytest.raises(BufferError):
        core.encode(memoryview(b"abcdef")[::2])


def test_a_message_above_64_mib_is_refused_on_both_sides(core):
    assert core.DEFAULT_LIMIT == 64 << 20
    large = bytes(core.DEFAULT_LIMIT + 1)
    with pytest.raises(FrameError, match="67108865 bytes is above the limit of 67108864"):
        core.encode(large)
    head = core.encode(large, limit=2**32 - 1)[0]
    with pytest.raises(FrameError, match="67108865 bytes is above the limit of 67108864"):
        core.Decoder().feed(head)


def test_a_refused_length_allocates_nothing(core):
    head = core.encode(bytes(8), limit=2**32 - 1)[0]
    assert len(head) == core.HEADER_SIZE
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(200):
        decoder = core.Decoder(limit=4)
        with pytest.raises(FrameError, match="above the limit of 4"):
            decoder.feed(head)
        assert decoder.pending == 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1024  # KiB


@given(garbage=st.binary(min_size=1, max_size=300), sizes=st.lists(st.integers(1, 64), min_size=1))
def test_garbage_ends_in_an_error_or_a_wait_never_in_a_frame(core, garbage, sizes):
    decoder = core.Decoder()
    with contextlib.suppress(FrameError):
        for piece in cut(garbage, sizes):
            assert decoder.feed(piece) == []
        assert len(garbage) < core.HEADER_SIZE
        assert decoder.pending == len(garbage)


@given(data=st.data(), checksum=st.booleans())
def test_mutated_streams_never_give_a_changed_header(core, data, checksum):
    stream = bytearray(joined(core.encode(b"message", [b"buffer"], checksum=checksum)))
    place = data.draw(st.integers(0, len(stream) - 1))
    stream[place] ^= data.draw(st.integers(1, 255))
    try:
        frames = core.Decoder().feed(bytes(stream))
    except FrameError:
        return
    assert not checksum
    assert place >= core.HEADER_SIZE
    assert [frame.sequence for frame in frames] == [0]


def test_a_stream_that_stops_anywhere_leaves_a_wait(core):
    stream = joined(core.encode(b"message", [b"buffer"], checksum=True))
    for end in range(len(stream)):
        decoder = core.Decoder()
        assert decoder.feed(stream[:end]) == []
        assert decoder.pending == end
        assert len(decoder.feed(stream[end:])) == 1


@pytest.mark.parametrize("sequence", [3, 5])
def test_replays_and_gaps_end_the_session(core, sequence):
    decoder = core.Decoder(first_sequence=3)
    decoder.feed(joined(core.encode(b"", sequence=3)))
    with pytest.raises(FrameError, match="wanted frame 4") as raised:
        decoder.feed(joined(core.encode(b"", sequence=sequence)))
    assert raised.value.code == "sequence"
    with pytest.raises(FrameError, match="wanted frame 4"):
        decoder.feed(joined(core.encode(b"", sequence=4)))


def test_another_protocol_is_told_at_once(core):
    with pytest.raises(FrameError, match="does not speak this protocol"):
        core.Decoder().feed(b"GET / HTTP/1.1\r\n")


def test_a_link_may_demand_checksums_and_smaller_frames_until_a_peer_is_known(core):
    decoder = core.Decoder(limit=64, require_checksums=True)
    with pytest.raises(FrameError, match="has no checksum"):
        decoder.feed(joined(core.encode(b"hello")))
    decoder = core.Decoder(limit=64)
    decoder.set_limit(1000)
    assert len(decoder.feed(joined(core.encode(bytes(900))))) == 1


def test_the_layout_is_the_documented_one(core):
    head = core.encode(b"hi", kind=7, sequence=258)[0]
    magic, version, kind, flags, buffers, sequence, length = struct.unpack("<2sBBHHQI", head[:20])
    assert (magic, version, kind, flags, buffers) == (b"M\xf2", 1, 7, 0, 0)
    assert (sequence, length) == (258, 2)
