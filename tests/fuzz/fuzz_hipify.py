"""Fuzzer of the converter: any bytes give an output, and its output stays as it is."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["port.hipify"]):
    from port.hipify import lexer, python_lexer
    from tests.port.hipify import one_file


def _check(data: bytes) -> None:
    if len(data) < 2:
        return
    path = ("a.cu", "a.h", "a.c", "a.pyx")[data[0] % 4]
    data = data[1:]
    for lex in (lexer.lex, python_lexer.lex):
        position = 0
        for _, start, end in lex(data):
            if not position <= start < end <= len(data):
                raise AssertionError((lex, start, end))
            position = end
    once = one_file.convert(data, path)
    lines = once.data.count(b"\n")
    if lines != data.count(b"\n") + once.lines_added:
        raise AssertionError((path, lines))
    if one_file.convert(once.data, path).data != once.data:
        raise AssertionError(path)


if __name__ == "__main__":
    atheris.Setup(sys.argv, _check)
    atheris.Fuzz()
