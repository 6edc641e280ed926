"""Rank and device variables: pure functions of the spec and the parent's environment."""

from __future__ import annotations

import pytest

from monarch._proc.environment import device_variables, rank_variables, variables
from monarch._proc.spec import ProcSpec


def spec(rank, extent, **fields):
    return ProcSpec(1, rank, (tuple(extent), tuple(extent.values())), **fields)


def test_ranks_count_within_the_mesh_and_within_the_host():
    found = rank_variables(spec(5, {"hosts": 2, "gpus": 4}, host=1))
    assert found == {
        "RANK": "5",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "1",
        "LOCAL_WORLD_SIZE": "4",
        "GROUP_RANK": "1",
    }


def test_a_mesh_without_dimensions_has_one_rank():
    found = rank_variables(spec(0, {}))
    assert (found["RANK"], found["WORLD_SIZE"], found["LOCAL_WORLD_SIZE"]) == ("0", "1", "1")


def test_named_dimensions_of_a_host_make_the_local_rank():
    found = rank_variables(spec(7, {"racks": 2, "a": 2, "b": 2}, per_host=("a", "b")))
    assert (found["LOCAL_RANK"], found["LOCAL_WORLD_SIZE"]) == ("3", "4")


@pytest.mark.parametrize(
    ("parent", "index", "cuda", "hip", "rocr"),
    [
        ({}, 3, "3", "0", "3"),
        ({"CUDA_VISIBLE_DEVICES": "4,5,6,7"}, 1, "5", "5", None),
        ({"CUDA_VISIBLE_DEVICES": "GPU-aa, GPU-bb"}, 1, "GPU-bb", "GPU-bb", None),
        ({"HIP_VISIBLE_DEVICES": "6,7"}, 1, "1", "7", None),
        ({"ROCR_VISIBLE_DEVICES": "6,7"}, 1, "1", "0", "7"),
        ({"ROCR_VISIBLE_DEVICES": "4,5,6,7", "HIP_VISIBLE_DEVICES": "2,3"}, 1, "1", "0", "7"),
        ({"ROCR_VISIBLE_DEVICES": "4,5", "CUDA_VISIBLE_DEVICES": "1,0"}, 0, "1", "0", "5"),
        ({"ROCR_VISIBLE_DEVICES": "4,5", "HIP_VISIBLE_DEVICES": "GPU-x"}, 0, "0", "GPU-x", "4,5"),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, 5, "1", "1", None),
        ({"CUDA_VISIBLE_DEVICES": ""}, 1, "", "", None),
        ({"ROCR_VISIBLE_DEVICES": ""}, 1, "1", "", ""),
    ],
)
def test_one_device_is_taken_from_those_the_parent_may_use(parent, index, cuda, hip, rocr):
    found = device_variables(index, parent)
    assert found["CUDA_VISIBLE_DEVICES"] == cuda
    assert found["HIP_VISIBLE_DEVICES"] == hip
    assert found.get("ROCR_VISIBLE_DEVICES") == rocr


def test_devices_are_given_out_along_gpus_on_each_host():
    found = variables(spec(5, {"hosts": 2, "gpus": 4}, host=1), {})
    assert found["CUDA_VISIBLE_DEVICES"] == "1"


def test_a_mesh_without_gpus_leaves_the_devices_alone():
    assert "CUDA_VISIBLE_DEVICES" not in variables(spec(1, {"workers": 4}), {})


def test_hosts_with_a_dimension_gpus_of_their_own_give_out_none():
    assert "CUDA_VISIBLE_DEVICES" not in variables(
        spec(1, {"gpus": 4, "workers": 1}, per_host=("workers",)), {}
    )


def test_the_users_own_variables_win():
    given = {"RANK": "x", "CUDA_VISIBLE_DEVICES": None}
    found = variables(spec(0, {"gpus": 1}, environment=given), {})
    assert (found["RANK"], found["CUDA_VISIBLE_DEVICES"]) == ("x", None)


def test_a_spec_survives_its_values():
    made = spec(3, {"gpus": 4}, name="n", bind={"cpus": "0"}, bootstrap=b"b", incarnation=2)
    again = ProcSpec.from_values(made.values())
    assert again.values() == made.values()
