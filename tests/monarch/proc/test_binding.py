"""Lists of processors and nodes as numactl and taskset write them."""

from __future__ import annotations

import os
import sys

import pytest

from monarch._proc import binding


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("0", [0]), ("0-3,8", [0, 1, 2, 3, 8]), ("5,1", [1, 5]), (" 2 , 4-5", [2, 4, 5]), (3, [3])],
)
def test_lists_are_read(text, wanted):
    assert binding.numbers(text, "cpus") == wanted


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1,,2", "4-2", "0-99999999"])
def test_what_is_no_list_is_refused_with_its_key(text):
    with pytest.raises(ValueError, match="membind="):
        binding.numbers(text, "membind")


@pytest.mark.skipif(sys.platform != "linux", reason="nodes are looked up in /sys")
def test_a_node_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="node 4000, which this machine does not have"):
        binding.apply({"cpunodebind": "4000"})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="binds a process of its own")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux binds memory")
def test_memory_of_a_node_that_is_not_there_is_refused_by_name():
    pid = os.fork()
    if pid == 0:
        try:
            binding.apply({"membind": "1000"})
        except OSError as error:
            os._exit(0 if "membind='1000'" in str(error) else 2)
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
