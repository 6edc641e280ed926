"""The first bytes of a Zstandard frame, without a library: Python before 3.14 has none.

Packed offload bundles keep their table of architectures at the front, so a decoder that stops
after some kilobytes tells them. Source of the format: RFC 8878, sections 3 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MAGIC = b"\x28\xb5\x2f\xfd"
_MAX_BLOCK = 1 << 17

# RFC 8878 section 3.1.1.3.2.1.1: baseline and extra bits of length codes.
_LITERAL_LENGTHS = [(n, 0) for n in range(16)] + [
    (16, 1), (18, 1), (20, 1), (22, 1), (24, 2), (28, 2), (32, 3), (40, 3), (48, 4), (64, 6),
    (128, 7), (256, 8), (512, 9), (1024, 10), (2048, 11), (4096, 12), (8192, 13), (16384, 14),
    (32768, 15), (65536, 16),
]  # fmt: skip
_MATCH_LENGTHS = [(n + 3, 0) for n in range(32)] + [
    (35, 1), (37, 1), (39, 1), (41, 1), (43, 2), (47, 2), (51, 3), (59, 3), (67, 4), (83, 4),
    (99, 5), (131, 7), (259, 8), (515, 9), (1027, 10), (2051, 11), (4099, 12), (8195, 13),
    (16387, 14), (32771, 15), (65539, 16),
]  # fmt: skip
_OFFSETS = [(1 << n, n) for n in range(32)]
# RFC 8878 section 3.1.1.3.2.2: default distributions.
_DEFAULTS = (
    (6, [4, 3, *[2] * 11, 1, 1, 1, *[2] * 9, 3, 2, *[1] * 5, *[-1] * 4]),
    (5, [*[1] * 6, 2, 2, 2, *[1] * 15, *[-1] * 5]),
    (6, [1, 4, 3, *[2] * 6, *[1] * 37, *[-1] * 7]),
)
_MAX_ACCURACY = (9, 8, 9)

# state -> symbol, bits to read, base of the next state
_Fse = list[tuple[int, int, int]]


class ZstdError(ValueError):
    """The bytes are no Zstandard frame that this decoder reads."""


@dataclass(slots=True)
class _State:
    """What one block hands to the next."""

    huffman: tuple[list[tuple[int, int]], int] | None = None
    tables: list[_Fse | None] = field(default_factory=lambda: [None, None, None])
    offsets: list[int] = field(default_factory=lambda: [1, 4, 8])


def unpack_head(data: bytes, room: int) -> bytes:
    """Up to `room` unpacked bytes from the front of the frame `data`, which may be cut off.

    Raises:
        ZstdError: the bytes are not a frame.

    """
    try:
        return _frame(data, room)
    except (IndexError, OverflowError) as error:
        raise ZstdError("the frame is damaged or cut off") from error


def _frame(data: bytes, room: int) -> bytes:
    if not data.startswith(MAGIC):
        raise ZstdError("no Zstandard frame")
    descriptor = data[4]
    single = descriptor >> 5 & 1
    size_bytes = (single, 2, 4, 8)[descriptor >> 6]
    at = 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3] + size_bytes
    out = bytearray()
    state = _State()
    last = False
    while not last and len(out) < room:
        if at + 3 > len(data):
            raise ZstdError("the frame is cut off")
        head = int.from_bytes(data[at : at + 3], "little")
        last, kind, size = bool(head & 1), head >> 1 & 3, head >> 3
        at += 3
        if size > _MAX_BLOCK or kind == 3:
            raise ZstdError("a block header is damaged")
        if kind == 0:
            out += data[at : at + size]
            at += size
        elif kind == 1:
            out += data[at : at + 1] * size
            at += 1
        else:
            _block(data[at : at + size], out, room, state)
            at += size
    return bytes(out[:room])


def _block(block: bytes, out: bytearray, room: int, state: _State) -> None:
    literals, at = _literals(block, room - len(out), state)
    count = block[at]
    at += 1
    if count > 127:
        if count < 255:
            count = ((count - 128) << 8) + block[at]
            at += 1
        else:
            count = block[at] + (block[at + 1] << 8) + 0x7F00
            at += 2
    if not count:
        out += literals
        return
    modes = block[at]
    at += 1
    for index in range(3):
        at = _sequence_table(block, at, modes >> (6 - 2 * index) & 3, index, state)
    _execute((_Backward(block[at:]), count), literals, out, room, state)


def _sequence_table(block: bytes, at: int, mode: int, index: int, state: _State) -> int:
    if mode == 0:
        accuracy, counts = _DEFAULTS[index]
        state.tables[index] = _fse_table(accuracy, counts)
    elif mode == 1:
        state.tables[index] = [(block[at], 0, 0)]
        at += 1
    elif mode == 2:
        accuracy, counts, at = _fse_counts(block, at, _MAX_ACCURACY[index])
        state.tables[index] = _fse_table(accuracy, counts)
    return at


def _execute(
    sequences: tuple[_Backward, int], literals: bytes, out: bytearray, room: int, state: _State
) -> None:
    bits, count = sequences
    lengths, offsets, matches = state.tables
    if lengths is None or offsets is None or matches is None:
        raise ZstdError("a table is repeated that was never given")
    now = [bits.read((len(table) - 1).bit_length()) for table in (lengths, offsets, matches)]
    at = 0
    for done in range(count):
        length_code, offset_code, match_code = (
            lengths[now[0]],
            offsets[now[1]],
            matches[now[2]],
        )
        offset = _valued(_OFFSETS, offset_code[0], bits)
        match = _valued(_MATCH_LENGTHS, match_code[0], bits)
        length = _valued(_LITERAL_LENGTHS, length_code[0], bits)
        out += literals[at : at + length]
        at += length
        if len(out) >= room:
            return
        back = _offset(offset, length, state.offsets)
        if not 0 < back <= len(out):
            raise ZstdError("a match points before the frame")
        match = min(match, room - len(out))
        repeated = out[-back:] if match > back else out[len(out) - back : len(out) - back + match]
        out += (repeated * (match // len(repeated) + 1))[:match]
        if done + 1 < count:
            now[0] = length_code[2] + bits.read(length_code[1])
            now[2] = match_code[2] + bits.read(match_code[1])
            now[1] = offset_code[2] + bits.read(offset_code[1])
    out += literals[at:]


def _valued(table: list[tuple[int, int]], code: int, bits: _Backward) -> int:
    base, extra = table[code]
    return base + bits.read(extra)


def _offset(value: int, length: int, recent: list[int]) -> int:
    """RFC 8878 section 3.1.1.5: the three most recent offsets stand for the values 1 to 3."""
    if value > 3:
        recent[:] = [value - 3, recent[0], recent[1]]
        return recent[0]
    index = value - 1 + (length == 0)
    if index == 0:
        return recent[0]
    chosen = recent[0] - 1 if index == 3 else recent[index]
    recent[:] = [chosen, recent[0], recent[2] if index == 1 else recent[1]]
    return chosen


def _literals(block: bytes, room: int, state: _State) -> tuple[bytes, int]:
    """The literals of a block, as many as can matter for `room` bytes, and where they end."""
    kind, form = block[0] & 3, block[0] >> 2 & 3
    if kind < 2:
        head = (1, 2, 1, 3)[form]
        size = int.from_bytes(block[:head], "little") >> (3 if head == 1 else 4)
        if kind == 0:
            return block[head : head + size], head + size
        return block[head : head + 1] * size, head + 1
    head, width = ((3, 10), (3, 10), (4, 14), (5, 18))[form]
    value = int.from_bytes(block[:head], "little") >> 4
    size, packed = value & ((1 << width) - 1), value >> width
    if size > _MAX_BLOCK:
        raise ZstdError("a literals header is damaged")
    end = head + packed
    at = head
    if kind == 2:
        state.huffman, at = _huffman(block, head)
    if state.huffman is None:
        raise ZstdError("a table is repeated that was never given")
    if form == 0:
        return _decode(block[at:end], size, room, state.huffman), end
    sizes = [int.from_bytes(block[at + i : at + i + 2], "little") for i in (0, 2, 4)]
    at += 6
    each = (size + 3) // 4
    found = b""
    for index in range(4):
        stop = at + sizes[index] if index < 3 else end
        if len(found) < room:
            found += _decode(
                block[at:stop],
                each if index < 3 else size - 3 * each,
                room - len(found),
                state.huffman,
            )
        at = stop
    return found, end


def _decode(
    stream: bytes, size: int, room: int, huffman: tuple[list[tuple[int, int]], int]
) -> bytes:
    table, width = huffman
    bits = _Backward(stream)
    out = bytearray()
    for _ in range(min(size, room)):
        symbol, used = table[bits.peek(width)]
        bits.skip(used)
        out.append(symbol)
    return bytes(out)


def _huffman(block: bytes, at: int) -> tuple[tuple[list[tuple[int, int]], int], int]:
    head = block[at]
    at += 1
    if head >= 128:
        count = head - 127
        packed = block[at : at + (count + 1) // 2]
        weights = [nibble for byte in packed for nibble in (byte >> 4, byte & 15)][:count]
        at += (count + 1) // 2
    else:
        weights = _fse_weights(block[at : at + head])
        at += head
    total = sum(1 << weight >> 1 for weight in weights)
    if not total or max(weights) > 12:
        raise ZstdError("a Huffman table is damaged")
    width = total.bit_length()
    left = (1 << width) - total
    if left & (left - 1) or width > 12:
        raise ZstdError("a Huffman table is damaged")
    weights.append(left.bit_length())
    table: list[tuple[int, int]] = []
    for weight in range(1, width + 1):
        for symbol, own in enumerate(weights):
            if own == weight:
                table += [(symbol, width + 1 - weight)] * (1 << weight >> 1)
    if len(table) != 1 << width:
        raise ZstdError("a Huffman table is damaged")
    return (table, width), at


def _fse_weights(data: bytes) -> list[int]:
    accuracy, counts, at = _fse_counts(data, 0, 6)
    table = _fse_table(accuracy, counts)
    bits = _Backward(data[at:])
    states = [bits.read(accuracy), bits.read(accuracy)]
    weights: list[int] = []
    turn = 0
    while len(weights) < 255:
        symbol, width, base = table[states[turn]]
        weights.append(symbol)
        if bits.left < width:
            weights.append(table[states[1 - turn]][0])
            return weights
        states[turn] = base + bits.read(width)
        turn = 1 - turn
    raise ZstdError("a Huffman table is damaged")


def _fse_counts(data: bytes, at: int, most: int) -> tuple[int, list[int], int]:
    """RFC 8878 section 4.1.1: the distribution, and the offset behind it."""
    value = int.from_bytes(data[at : at + 512], "little")
    accuracy = (value & 15) + 5
    if accuracy > most:
        raise ZstdError("a table is damaged")
    used = 4
    left = (1 << accuracy) + 1
    counts: list[int] = []
    while left > 1 and len(counts) < 256:
        width = left.bit_length()
        low = (1 << (width - 1)) - 1
        spare = (1 << width) - 1 - left
        count = value >> used & ((1 << width) - 1)
        if count & low < spare:
            count &= low
            used += width - 1
        else:
            count -= spare if count > low else 0
            used += width
        counts.append(count - 1)
        left -= abs(count - 1)
        while counts[-1] == 0:
            more = value >> used & 3
            used += 2
            counts += [0] * more
            if more < 3:
                break
    if left != 1 or used > 8 * (len(data) - at):
        raise ZstdError("a table is damaged")
    return accuracy, counts, at + (used + 7) // 8


def _fse_table(accuracy: int, counts: list[int]) -> _Fse:
    size = 1 << accuracy
    symbols = [0] * size
    high = size
    for symbol, count in enumerate(counts):
        if count == -1:
            high -= 1
            symbols[high] = symbol
    step, at = (size >> 1) + (size >> 3) + 3, 0
    for symbol, count in enumerate(counts):
        for _ in range(count):
            symbols[at] = symbol
            at = (at + step) & (size - 1)
            while at >= high:
                at = (at + step) & (size - 1)
    following = [1 if count == -1 else count for count in counts]
    table: _Fse = []
    for symbol in symbols:
        number = following[symbol]
        following[symbol] += 1
        width = accuracy - number.bit_length() + 1
        table.append((symbol, width, (number << width) - size))
    return table


class _Backward:
    """Bits read from the end of `data`, whose highest set bit marks the start."""

    __slots__ = ("_data", "left")

    def __init__(self, data: bytes) -> None:
        if not data or not data[-1]:
            raise ZstdError("a bit stream has no end mark")
        self._data = data
        self.left = 8 * (len(data) - 1) + data[-1].bit_length() - 1

    def peek(self, width: int) -> int:
        if self.left >= width:
            low = self.left - width
            word = int.from_bytes(self._data[low >> 3 : (low >> 3) + 9], "little")
            return word >> (low & 7) & ((1 << width) - 1)
        word = int.from_bytes(self._data[:9], "little") & ((1 << max(self.left, 0)) - 1)
        return word << (width - max(self.left, 0))

    def skip(self, width: int) -> None:
        self.left -= width

    def read(self, width: int) -> int:
        value = self.peek(width)
        self.left -= width
        return value
