"""What every mesh can do: slice, split, flatten, rename, and tell its sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monarch._shape import MeshTrait, Region, Shape, Slice


class Ranks(MeshTrait):
    """A mesh whose elements are its base ranks."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    @property
    def _ndslice(self) -> Slice:
        return self.shape.ndslice

    @property
    def _labels(self) -> tuple[str, ...]:
        return tuple(self.shape.labels)

    def _new_with_shape(self, shape: Shape) -> Ranks:
        return Ranks(shape)

    @property
    def ranks(self) -> list[int]:
        return self.shape.ranks()


def mesh(**sizes: int) -> Ranks:
    return Ranks(Shape(list(sizes), Slice.new_row_major(list(sizes.values()))))


def test_an_index_drops_its_dimension_and_a_slice_keeps_it():
    whole = mesh(hosts=2, gpus=4)
    assert whole.slice(hosts=1).ranks == [4, 5, 6, 7]
    assert whole.slice(hosts=1).extent == {"gpus": 4}
    part = whole.slice(gpus=slice(1, 3))
    assert part.ranks == [1, 2, 5, 6]
    assert part.sizes == {"hosts": 2, "gpus": 2}
    assert whole.slice(hosts=1, gpus=2).ranks == [6]
    assert whole.slice(hosts=1, gpus=2).extent.labels == []
    assert whole.slice().ranks == whole.ranks


def test_slices_of_slices_keep_the_base_ranks():
    part = mesh(a=4, b=6).slice(a=slice(1, None, 2)).slice(b=slice(None, None, 3))
    assert part.ranks == [6, 9, 18, 21]
    assert part.slice(a=1, b=1).ranks == [21]
    assert mesh(a=4).slice(a=slice(-2, None)).ranks == [2, 3]


@pytest.mark.report("91")
def test_a_step_wider_than_the_range_keeps_its_first_element():
    assert mesh(a=1).slice(a=slice(0, 1, 2)).ranks == [0]
    assert mesh(a=4).slice(a=slice(1, 4, 9)).ranks == [1]


@pytest.mark.report("90")
def test_a_mesh_with_gaps_does_not_flatten():
    part = mesh(a=2, b=4).slice(b=slice(0, 4, 2))
    assert part.ranks == [0, 2, 4, 6]
    with pytest.raises(ValueError, match=r"gaps between its base ranks \[0, 2, 4, 6\]"):
        part.flatten("all")


def test_a_dense_part_flattens():
    assert mesh(a=2, b=4).flatten("all").sizes == {"all": 8}
    assert mesh(a=2, b=4).slice(a=1).flatten("all").ranks == [4, 5, 6, 7]
    assert mesh(a=1).slice(a=slice(0, 1, 2)).flatten("all").ranks == [0]
    assert mesh(a=2).slice(a=1).flatten("all").sizes == {"all": 1}


@given(st.lists(st.integers(1, 4), max_size=4), st.data())
def test_a_flat_mesh_holds_the_same_ranks_in_the_same_order(sizes, data):
    whole = mesh(**{f"d{n}": size for n, size in enumerate(sizes)})
    for label, size in whole.sizes.items():
        start = data.draw(st.integers(0, size - 1))
        stop = data.draw(st.integers(start + 1, size))
        whole = whole.slice(**{label: slice(start, stop, data.draw(st.integers(1, 3)))})
    ranks = whole.ranks
    gaps = ranks != list(range(ranks[0], ranks[0] + len(ranks)))
    if gaps:
        with pytest.raises(ValueError, match="gaps"):
            whole.flatten("all")
    else:
        assert whole.flatten("all").ranks == ranks


@pytest.mark.report("92")
def test_the_size_left_out_of_a_split_is_inferred_and_checked():
    whole = mesh(gpus=8)
    assert whole.split(gpus=("dp", "tp"), tp=2).sizes == {"dp": 4, "tp": 2}
    with pytest.raises(ValueError, match=r"dp=\?, tp=3 do not multiply to 8, the size of 'gpus'"):
        whole.split(gpus=("dp", "tp"), tp=3)
    with pytest.raises(ValueError, match="the sizes of 'dp' and 'tp' are both unknown"):
        whole.split(gpus=("dp", "tp"))


def test_a_split_keeps_ranks_and_other_dimensions():
    whole = mesh(hosts=4, gpus=2).slice(gpus=1)
    assert whole.ranks == [1, 3, 5, 7]
    parts = whole.split(hosts=("dp", "pp"), pp=2)
    assert parts.ranks == whole.ranks
    assert parts.slice(pp=0).ranks == [1, 5]
    both = mesh(h=4, g=4).split(h=("a", "b"), g=("c", "d"), a=2, d=4)
    assert both.sizes == {"a": 2, "b": 2, "c": 1, "d": 4}
    assert both.ranks == list(range(16))
    assert mesh(h=4).split(h=("h", "g"), g=2).sizes == {"h": 2, "g": 2}


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"gpus": "dp"}, "sequence of names"),
        ({"gpus": ()}, "a dimension has to stay"),
        ({"gpus": ("dp", "tp"), "dp": 2, "tp": 2}, "do not multiply to 8"),
        ({"gpus": ("dp", "tp"), "dp": 0}, "do not multiply to 8"),
        ({"gpus": ("dp", "tp"), "dp": 2, "pp": 2}, "no dimension 'pp'"),
        ({"gpus": ("dp", "dp"), "dp": 2}, "do not multiply to 8"),
        ({"gpus": ("hosts", "tp"), "tp": 2}, "'hosts' is given twice"),
        ({"gpu": ("dp", "tp")}, "no dimension 'gpu'; the dimensions are 'hosts', 'gpus'"),
    ],
)
def test_bad_splits_are_refused(request_, text):
    with pytest.raises(ValueError, match=text):
        mesh(hosts=2, gpus=8).split(**request_)


def test_renaming_keeps_ranks_and_order():
    renamed = mesh(hosts=2, gpus=4).rename(gpus="tp")
    assert renamed.sizes == {"hosts": 2, "tp": 4}
    assert mesh(a=2, b=3).rename(a="b", b="a").sizes == {"b": 2, "a": 3}
    with pytest.raises(ValueError, match="given twice"):
        mesh(hosts=2, gpus=4).rename(gpus="hosts")
    with pytest.raises(ValueError, match="no dimension 'tp'"):
        mesh(hosts=2).rename(tp="x")


def test_sizes_of_one_of_some_and_of_all_dimensions():
    whole = mesh(hosts=2, gpus=4, threads=3)
    assert whole.size() == 24 == len(whole)
    assert whole.size("gpus") == 4
    assert whole.size(("hosts", "threads")) == 6
    assert whole.size([]) == 1
    with pytest.raises(KeyError, match="no dimension 'gpu'"):
        whole.size("gpu")


def test_what_cannot_be_selected_names_mesh_extent_and_request():
    whole = mesh(hosts=2, gpus=4)
    start = r"Ranks \{'hosts': 2, 'gpus': 4\}: slice\("
    with pytest.raises(TypeError, match=start + r"gpu=1\): no dimension 'gpu'"):
        whole.slice(gpu=1)
    with pytest.raises(IndexError, match=start + r"gpus=4\): index 4 of .* out of range 0 to 3"):
        whole.slice(gpus=4)
    with pytest.raises(IndexError, match="index -1"):
        whole.slice(gpus=-1)
    with pytest.raises(ValueError, match=start + r"gpus=slice\(3, 3, None\)\): nothing"):
        whole.slice(gpus=slice(3, 3))
    with pytest.raises(ValueError, match="step"):
        whole.slice(gpus=slice(None, None, -1))
    with pytest.raises(TypeError, match="an integer or a slice of integers"):
        whole.slice(gpus="1")
    with pytest.raises(TypeError, match="an integer or a slice of integers"):
        whole.slice(gpus=slice("a", None))


def test_shapes_select_by_label_and_find_base_ranks():
    shape = Shape(["hosts", "gpus"], Slice.new_row_major([2, 4]))
    assert shape.index(hosts=1, gpus=3).ranks() == [7]
    assert shape.at("hosts", 1).select("gpus", slice(2, None)).coordinates(7) == {"gpus": 1}
    assert len(shape) == 8
    assert Shape.unity().ranks() == [0]
    with pytest.raises(KeyError, match="no dimension 'x'"):
        shape.at("x", 0)
    with pytest.raises(ValueError, match="do not fit"):
        Shape(["hosts"], shape.ndslice)


def test_a_region_tells_the_point_of_a_base_rank():
    region = Region(["hosts", "gpus"], Slice(offset=1, sizes=[2, 2], strides=[4, 2]))
    point = region.point_of_base_rank(7)
    assert (dict(point), point.rank) == ({"hosts": 1, "gpus": 1}, 3)
    with pytest.raises(ValueError, match="rank 2"):
        region.point_of_base_rank(2)
    assert region.as_shape().region == region
    assert region != region.as_shape()
