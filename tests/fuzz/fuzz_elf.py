"""Fuzzer of the ELF reader: any bytes end in facts that survive their way as JSON, or in an error.

Time and memory are libFuzzer's -timeout and -rss_limit_mb. Run it by `nox -s fuzz`, or alone:
python tests/fuzz/fuzz_elf.py -max_total_time=60 tests/fuzz/corpus/fuzz_elf
"""

from __future__ import annotations

import io
import json
import sys

import atheris

with atheris.instrument_imports():
    from port.verify import elf
    from port.verify.facts import from_json, to_json


def test_one_input(data: bytes) -> None:
    try:
        found = elf.read(io.BytesIO(data))
    except Exception:  # noqa: BLE001 - the child answers any exception with "cannot be read"
        return
    assert from_json(json.loads(json.dumps(to_json(found)))) == found


if __name__ == "__main__":
    atheris.Setup(sys.argv, test_one_input)
    atheris.Fuzz()
