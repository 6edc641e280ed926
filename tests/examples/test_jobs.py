"""Examples whose hosts come from a scheduler."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_hosts_from_slurm(slurm, tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/slurm_hosts.py")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "runtime")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^(then )?rank (\d) on (n\d)$", done.stdout, re.MULTILINE)
    assert [rank for _, rank, _ in found] == ["0", "1", "2", "3"] * 2
    before, after = ([node for then, _, node in found if bool(then) == late] for late in (0, 1))
    assert before[2:] == after[2:]
    assert before[0] == before[1] != after[0] == after[1]
    assert slurm.queue() == []
