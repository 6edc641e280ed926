"""The device tests that launch no kernel, over the stand-ins: they work before a GPU is there."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "device"
FILES = ("test_actors.py", "test_collectives.py", "test_memory.py")
# A stand-in's dma-buf is a descriptor of plain memory, and HIP's before 7 is another library's.
RUN = """
import sys
import pytest
options = ["-q", "-p", "no:cacheprovider", "-o", "pythonpath=.", "-k", "not dma_buffer"]
sys.exit(pytest.main([*options, *sys.argv[1:]]))
"""


def test_they_pass_over_stand_ins(package):
    process = package.start(RUN, *(str(FOLDER / name) for name in FILES))
    text, errors = process.communicate(timeout=300)
    assert process.returncode == 0, text + errors
    assert "skipped" not in text, text
