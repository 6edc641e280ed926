"""The SLURM rig: clusters of several workers stand side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ci import slurm

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.skipif(bool(slurm.missing()), reason=slurm.missing())
def test_a_node_that_crashes_takes_none_of_its_name_with_it(tmp_path: Path) -> None:
    with slurm.Cluster(tmp_path / "a", 1) as one, slurm.Cluster(tmp_path / "b", 1) as other:
        lost, left = one._daemon("n1"), other._daemon("n1")
        assert len(lost) == len(left) == 1
        one.crash("n1")
        assert one._daemon("n1") == []
        assert other._daemon("n1") == left
        one.clear()
        assert len(one._daemon("n1")) == 1
