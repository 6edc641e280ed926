"""Slices: which base ranks a part of a mesh holds."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monarch._shape import NDSlice, Shape, Slice


def dense(*sizes: int) -> Slice:
    return Slice.new_row_major(sizes)


def test_a_dense_slice_counts_through_all_ranks():
    assert list(dense(2, 3)) == [0, 1, 2, 3, 4, 5]
    assert dense(2, 3).strides == [3, 1]
    assert list(dense()) == [0]
    assert NDSlice is Slice


def test_offset_and_strides_select_ranks_with_gaps():
    part = Slice(offset=5, sizes=[2, 2], strides=[8, 2])
    assert list(part) == [5, 7, 13, 15]
    assert part[3] == 15
    assert part[1:3] == (7, 13)
    assert part.nditem([1, 0]) == 13
    assert part.coordinates(13) == [1, 0]
    assert not part.dense


@given(st.data())
def test_get_and_index_are_inverse_on_any_part_of_a_mesh(data: st.DataObject):
    sizes = data.draw(st.lists(st.integers(1, 5), max_size=4))
    shape = Shape([f"d{n}" for n in range(len(sizes))], Slice.new_row_major(sizes))
    for label, size in zip(shape.labels, sizes, strict=True):
        start = data.draw(st.integers(0, size - 1))
        step = data.draw(st.integers(1, 7))
        shape = shape.select(label, slice(start, None, step))
    part = shape.ndslice
    ranks = part.ranks()
    assert len(ranks) == len(part)
    assert ranks == sorted(set(ranks))
    assert [part.get(place) for place in range(len(part))] == ranks
    assert [part.index(rank) for rank in ranks] == list(range(len(part)))
    assert [part.nditem(part.coordinates(rank)) for rank in ranks] == ranks
    missing = set(range(max(ranks) + 2)) - set(ranks)
    for rank in missing:
        with pytest.raises(ValueError, match=f"rank {rank} is not in"):
            part.index(rank)


def test_overlapping_strides_are_searched():
    windows = Slice(offset=0, sizes=[3, 2], strides=[1, 3])
    assert windows.ranks() == [0, 3, 1, 4, 2, 5]
    assert windows.coordinates(4) == [1, 1]
    odd = Slice(offset=0, sizes=[2, 2], strides=[2, 3])
    assert odd.coordinates(2) == [1, 0]
    with pytest.raises(ValueError, match="rank 4"):
        odd.index(4)


@given(st.lists(st.integers(0, 40), max_size=20))
def test_a_list_of_ranks_is_covered_in_its_order(ranks: list[int]):
    assert [rank for part in Slice.from_list(ranks) for rank in part] == ranks


def test_regular_ranks_become_one_slice():
    assert Slice.from_list([3, 5, 7, 9]) == [Slice(offset=3, sizes=[4], strides=[2])]


def test_density_ignores_strides_of_single_elements():
    assert Slice(offset=4, sizes=[1, 3], strides=[9, 1]).dense
    assert not Slice(offset=0, sizes=[2, 2], strides=[4, 1]).dense


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="one stride for each size"):
        Slice(offset=0, sizes=[1, 2], strides=[1])
    with pytest.raises(ValueError, match="not negative"):
        Slice(offset=-1, sizes=[], strides=[])
    with pytest.raises(IndexError, match="index 6 is out of range for 6"):
        dense(2, 3).get(6)
    with pytest.raises(IndexError, match="out of range"):
        dense(2, 3).nditem([2, 0])
    with pytest.raises(IndexError, match="wanted 2 indices"):
        dense(2, 3).nditem([1])


def test_slices_are_values():
    part = Slice(offset=1, sizes=[2], strides=[3])
    assert pickle.loads(pickle.dumps(part)) == part  # noqa: S301 - made right here
    assert hash(part) == hash(Slice(offset=1, sizes=(2,), strides=(3,)))
    assert part != dense(2)
    assert repr(part) == "Slice(offset=1, sizes=[2], strides=[3])"
