"""Values by rank: how they are reached, sliced, and sent on."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from monarch._shape import Extent, Shape, Slice, ValueMesh
from monarch._shape.value_mesh import Failed, Unread

HOSTS = Extent(["hosts", "gpus"], [2, 2])


def values() -> ValueMesh[str]:
    return ValueMesh.over(HOSTS, ["a", "b", "c", "d"])


def test_iterating_gives_points_with_their_values():
    pairs = list(values())
    assert pairs == list(values().items())
    assert [(dict(point), value) for point, value in pairs] == [
        ({"hosts": 0, "gpus": 0}, "a"),
        ({"hosts": 0, "gpus": 1}, "b"),
        ({"hosts": 1, "gpus": 0}, "c"),
        ({"hosts": 1, "gpus": 1}, "d"),
    ]
    assert list(values().values()) == ["a", "b", "c", "d"]
    assert len(values()) == 4


def test_one_value_is_had_by_rank_or_by_indices():
    assert values().get(2) == "c"
    assert values().item(gpus=1, hosts=0) == "b"
    assert values().slice(hosts=1, gpus=1).item() == "d"


def test_what_is_not_there_is_refused_with_mesh_extent_and_request():
    start = r"ValueMesh \{'hosts': 2, 'gpus': 2\}: "
    with pytest.raises(IndexError, match=start + r"get\(4\): index 4 is out of range for 4"):
        values().get(4)
    with pytest.raises(KeyError, match=r"item\(hosts=1\): an index is needed for 'gpus'"):
        values().item(hosts=1)
    with pytest.raises(KeyError, match=r"item\(.*rack=1\): no dimension 'rack'"):
        values().item(hosts=1, gpus=1, rack=1)
    with pytest.raises(IndexError, match=r"item\(hosts=2, gpus=0\): .*out of range"):
        values().item(hosts=2, gpus=0)


def test_slices_are_views_with_points_of_their_own():
    column = values().slice(gpus=1)
    assert [(dict(point), point.rank, value) for point, value in column] == [
        ({"hosts": 0}, 0, "b"),
        ({"hosts": 1}, 1, "d"),
    ]
    assert column.get(1) == "d"
    assert column.rename(hosts="h").item(h=1) == "d"
    assert list(values().flatten("all").slice(all=slice(1, 3)).values()) == ["b", "c"]
    assert list(values().split(hosts=("x", "y"), x=2).slice(x=1).values()) == ["c", "d"]


def test_values_are_read_when_they_are_looked_at_and_once():
    reads: list[int] = []

    def read(number: int) -> int:
        reads.append(number)
        return number * 10

    found: ValueMesh[Any] = ValueMesh.over(Extent(["n"], [3]), [Unread(read, n) for n in range(3)])
    part = found.slice(n=1)
    assert reads == []
    assert part.item() == 10
    assert (part.item(), found.get(1), reads) == (10, 10, [1])
    assert list(found.values()) == [0, 10, 20]
    assert reads == [1, 0, 2]


def test_a_failed_rank_holds_its_error():
    error = ValueError("no")
    cells: list[Any] = [1, Failed(error), KeyError("a value")]
    found: ValueMesh[Any] = ValueMesh.over(Extent(["n"], [3]), cells)
    assert found.get(1) is error
    assert [(point.rank, failed) for point, failed in found.errors()] == [(1, error)]
    assert next(found.slice(n=slice(1, 2)).errors())[1] is error
    assert list(found.slice(n=0).errors()) == []


def double(number: int) -> int:
    return number * 2


def test_values_of_a_slice_survive_pickling_alone():
    cells: list[Any] = [b"x" * 10_000, 1, Unread(double, 21), Failed(ValueError("no"))]
    part = ValueMesh.over(HOSTS, cells).slice(hosts=1)
    data = pickle.dumps(part, 5)
    assert len(data) < 1_000
    copy = pickle.loads(data)  # noqa: S301 - made right here
    assert copy.sizes == {"gpus": 2}
    assert copy.get(0) == 42
    assert str(copy.get(1)) == "no"
    assert [point.rank for point, _ in copy.errors()] == [1]


def test_a_mesh_is_made_of_one_value_for_each_element_of_any_shape():
    every_second = Shape(["n"], Slice(offset=1, sizes=[2], strides=[2]))
    made = ValueMesh(every_second, "bd")
    assert made.values() == ["b", "d"]
    assert made.item(n=1) == made.slice(n=1).item() == "d"
    assert pickle.loads(pickle.dumps(made)).values() == ["b", "d"]  # noqa: S301 - made right here
    for given in ("b", "bde"):
        with pytest.raises(ValueError, match=f"expected 2 values, .* contains {len(given)}"):
            ValueMesh(every_second, given)


def test_a_mesh_is_made_of_values_with_their_ranks_in_any_order():
    shape = Shape.dense(Extent(["n"], [3]))
    made = ValueMesh.from_indexed(shape, [(2, "c"), (0, "x"), (1, "b"), (0, "a")])
    assert made.values() == ["a", "b", "c"]
    with pytest.raises(ValueError, match=r"expected 3 ranks .* contains 2: \[1\] are missing"):
        ValueMesh.from_indexed(shape, [(0, "a"), (2, "c")])
    with pytest.raises(ValueError, match="rank 3 is out of range"):
        ValueMesh.from_indexed(shape, [(3, "d")])


def test_values_are_a_list_that_can_be_indexed_counted_and_used_again():
    found = values().slice(gpus=0).values()
    assert (found[-1], len(found), found, sorted(found)) == ("c", 2, ["a", "c"], ["a", "c"])
    found.append("e")
    assert values().slice(gpus=0).values() == ["a", "c"]


def test_a_rank_that_is_not_there_is_an_error_of_the_index_and_of_the_value():
    for error in (IndexError, ValueError):
        with pytest.raises(error, match=r"get\(4\): index 4 is out of range"):
            values().get(4)


def test_the_text_shows_extent_points_and_values():
    assert repr(values().slice(hosts=0)) == (
        "ValueMesh({'gpus': 2}):\n  (({'gpus': 0/2}, 'a'), ({'gpus': 1/2}, 'b'))"
    )
    assert ValueMesh[int].__origin__ is ValueMesh
