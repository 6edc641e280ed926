"""The lexer: exact to the byte, total, and linear."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from port.hipify import lexer, python_lexer
from port.hipify.lexer import CHAR, HEADER, IDENT, NUMBER, PUNCT, RAW, STRING


def tokens(data: bytes) -> list[tuple[int, bytes]]:
    return [(kind, data[start:end]) for kind, start, end in lexer.lex(data)]


def texts(data: bytes) -> list[bytes]:
    return [text for _, text in tokens(data)]


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"cudaError_t x", [(IDENT, b"cudaError_t"), (IDENT, b"x")]),
        (b"\xef\xbb\xbfcudaFree", [(IDENT, b"cudaFree")]),
        (b"k<<<1,2>>>(x)", [*[(IDENT, b"k"), (PUNCT, b"<<<"), (NUMBER, b"1"), (PUNCT, b",")],
                            *[(NUMBER, b"2"), (PUNCT, b">>>"), (PUNCT, b"("), (IDENT, b"x")],
                            (PUNCT, b")")]),
        (b"1'000'000 0x1e+3 .5f 1.e-3", [(NUMBER, b"1'000'000"), (NUMBER, b"0x1e+3"),
                                         (NUMBER, b".5f"), (NUMBER, b"1.e-3")]),
        (b'u8R"x(a)" )x" b', [(RAW, b'u8R"x(a)" )x"'), (IDENT, b"b")]),
        (b"L'\\'' u\"a\\\"b\"", [(CHAR, b"L'\\''"), (STRING, b'u"a\\"b"')]),
        (b'PRI"q"', [(IDENT, b"PRI"), (STRING, b'"q"')]),
        (b"a->b::c ->* ...", [*[(IDENT, b"a"), (PUNCT, b"->"), (IDENT, b"b"), (PUNCT, b"::")],
                              *[(IDENT, b"c"), (PUNCT, b"->*"), (PUNCT, b"...")]]),
        (b"#include<cuda.h>", [(PUNCT, b"#"), (IDENT, b"include"), (HEADER, b"<cuda.h>")]),
        (b'# /*c*/ include\t"a.h"', [(PUNCT, b"#"), (IDENT, b"include"), (HEADER, b'"a.h"')]),
        (b"#if __has_include( <a>)", [*[(PUNCT, b"#"), (IDENT, b"if"), (IDENT, b"__has_include")],
                                      *[(PUNCT, b"("), (HEADER, b"<a>"), (PUNCT, b")")]]),
        (b"x##y #z", [(IDENT, b"x"), (PUNCT, b"##"), (IDENT, b"y"), (PUNCT, b"#"), (IDENT, b"z")]),
    ],
)  # fmt: skip
def test_tokens_of(data: bytes, wanted: list[tuple[int, bytes]]) -> None:
    assert tokens(data) == wanted


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"a // b\nc", [b"a", b"c"]),
        (b"a // b \\\n c\nd", [b"a", b"d"]),
        (b"a // b \\\r\n c\r\nd", [b"a", b"d"]),
        (b'a /* // */ b /* " */ c', [b"a", b"b", b"c"]),
        (b"a /\\\n* b *\\\n/ c", [b"a", b"c"]),
        (b"a /\\\n/ b\nc", [b"a", b"c"]),
        (b"a /* b", [b"a"]),
        (b"a / b /= c", [b"a", b"/", b"b", b"/=", b"c"]),
    ],
)
def test_comments_are_no_tokens(data: bytes, wanted: list[bytes]) -> None:
    assert texts(data) == wanted


def test_a_spliced_name_keeps_its_physical_range() -> None:
    assert tokens(b"cuda\\\nFree(\\\r\np)") == [
        (IDENT, b"cuda\\\nFree"),
        (PUNCT, b"("),
        (IDENT, b"p"),
        (PUNCT, b")"),
    ]
    assert texts(b"a\\\n b") == [b"a", b"b"]
    assert texts(b"a\\ \t\nb") == [b"a\\ \t\nb"]


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b'"open\nnext', [b'"open', b"next"]),
        (b"don't\nnext", [b"don", b"'t", b"next"]),
        (b'"a\\\nb" c', [b'"a\\\nb"', b"c"]),
        (b'"a\\\\\\\n"b" c', [b'"a\\\\\\\n"', b"b", b'" c']),
        (b'"\\\\" z', [b'"\\\\"', b"z"]),
        (b'R"x(never closed "', [b'R"x(never closed "']),
        (b'"ends in \\', [b'"ends in \\']),
        (b"\\", [b"\\"]),
    ],
)
def test_what_is_open_ends_where_a_compiler_ends_it(data: bytes, wanted: list[bytes]) -> None:
    found = texts(data)
    assert found[: len(wanted)] == wanted or b"".join(found) == b"".join(wanted)


_PIECES = st.lists(
    st.one_of(
        st.binary(max_size=6),
        st.sampled_from(
            [b'"', b"'", b"\\", b"\\\n", b"\\\r\n", b"/*", b"*/", b"//", b'R"(', b')"', b"#include",
             b"<", b">", b"<<<", b">>>", b"#", b"%:", b"\n", b"\r\n", b"cuda", b"Free", b"1'0",
             b".", b"__has_include(", b"\x00", b"\xff", b"e+", b"::"]
        ),
    ),
    max_size=40,
)  # fmt: skip


@pytest.mark.promise("B07")
@given(_PIECES)
def test_any_bytes_have_tokens_in_order_that_do_not_overlap(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    for lex in (lexer.lex, python_lexer.lex):
        position = 0
        for kind, start, end in lex(data):
            assert 1 <= kind <= HEADER
            assert position <= start < end <= len(data)
            position = end


@pytest.mark.promise("B07")
@given(_PIECES)
def test_between_tokens_lie_only_space_comments_and_splices(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    found = lexer.lex(data)
    edges = [0, *(edge for token in found for edge in token[1:]), len(data)]
    if data.startswith(lexer.UTF8_BOM):
        edges[0] = len(lexer.UTF8_BOM)
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        gap = data[start:end]
        assert not lexer.lex(gap).kinds or b"//" in data[:start] or gap.startswith(b"\xef")


@pytest.mark.promise("B07")
@pytest.mark.parametrize(
    "piece",
    [b"a b(c);", b'R"x(', b'"\\a', b"'", b"a\\\n", b"/\\\n", b"#include ", b"#include <", b"# /*",
     b"__has_include(", b"*a", b"(", b"//\n", b'"' + b"x" * 50, b"\\ "],
)  # fmt: skip
def test_time_is_linear_in_size(piece: bytes) -> None:
    def seconds(count: int) -> float:
        data = b"/*" * (piece == b"*a") + piece * count
        best = 1e9
        for _ in range(3):
            start = time.process_time()
            lexer.lex(data)
            best = min(best, time.process_time() - start)
        return best

    count = 60_000 // len(piece)
    assert seconds(4 * count) <= 12 * seconds(count) + 0.02


def test_python_strings_and_comments_are_told_from_code() -> None:
    data = b'# cudaMalloc\ncudaFree("""cuda\n"x" """, r\'\\\\\', \'it\\\'s\')\n"open\nb'
    found = [data[start:end] for _, start, end in python_lexer.lex(data)]
    assert found == [
        *[b"cudaFree", b"(", b'"""cuda\n"x" """', b",", b"r'\\\\'", b",", b"'it\\'s'", b")"],
        *[b'"open', b"b"],
    ]
