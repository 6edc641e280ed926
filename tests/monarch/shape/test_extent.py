"""Extents and points: named sizes, and places in them."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monarch._shape import Extent, Point, Region, Slice, decode_extent, encode_extent

HOSTS = Extent(["hosts", "gpus"], [2, 4])


def test_an_extent_maps_labels_to_sizes():
    assert dict(HOSTS) == {"hosts": 2, "gpus": 4}
    assert HOSTS.labels == ["hosts", "gpus"]
    assert HOSTS.sizes == [2, 4]
    assert HOSTS.nelements == 8
    assert HOSTS == {"hosts": 2, "gpus": 4}
    assert Extent(["gpus", "hosts"], [4, 2]) != HOSTS
    assert str(HOSTS) == "{'hosts': 2, 'gpus': 4}"
    assert Extent([], []).nelements == 1


def test_an_extent_has_a_dense_region():
    assert HOSTS.region == Region(["hosts", "gpus"], Slice.new_row_major([2, 4]))
    assert HOSTS.region.as_shape().extent == HOSTS


def test_a_point_maps_labels_to_indices():
    point = Point(6, HOSTS)
    assert dict(point) == {"hosts": 1, "gpus": 2}
    assert (point.rank, point.extent, point.size("gpus")) == (6, HOSTS, 4)
    assert str(point) == "{'hosts': 1/2, 'gpus': 2/4}"
    assert point == {"hosts": 1, "gpus": 2}
    assert point != Point(6, Extent(["a"], [8]))


def test_the_point_of_a_single_element_has_no_dimensions():
    point = Point(0, Extent([], []))
    assert dict(point) == {}
    assert len(point) == 0


def test_unknown_labels_name_the_known_ones():
    for mapping in (HOSTS, Point(0, HOSTS)):
        with pytest.raises(KeyError, match="no dimension 'gpu'; the dimensions are 'hosts', 'gpus"):
            mapping["gpu"]
        with pytest.raises(ValueError, match=r"^no dimension 'gpu'; the dim"):
            mapping["gpu"]
        assert mapping.get("gpu") is None
        assert "gpu" not in mapping


@pytest.mark.parametrize(
    ("labels", "sizes", "error", "text"),
    [
        (["a"], [1, 2], ValueError, "one size for each label"),
        (["a", "a"], [1, 2], ValueError, "'a' is given twice"),
        (["a"], [-1], ValueError, "not negative"),
        ([""], [1], ValueError, "at least one character"),
        (["a\0"], [1], ValueError, "no NUL"),
        ([1], [1], TypeError, "a label is a string"),
        ("ab", [1, 2], TypeError, "sequence of strings"),
        (["a"], [1.5], TypeError, "integer"),
    ],
)
def test_bad_extents_are_refused(labels, sizes, error, text):
    with pytest.raises(error, match=text):
        Extent(labels, sizes)


def test_a_point_lies_in_its_extent():
    with pytest.raises(ValueError, match="rank 8 is out of range for extent"):
        Point(8, HOSTS)
    with pytest.raises(ValueError, match="rank -1"):
        Point(-1, HOSTS)


def test_extents_and_points_are_values():
    for value in (HOSTS, Point(5, HOSTS), HOSTS.region):
        copy = pickle.loads(pickle.dumps(value))  # noqa: S301 - made right here
        assert copy == value
        assert hash(copy) == hash(value)


labels = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(labels, st.integers(0, 10**9)))
def test_an_extent_survives_as_bytes(sizes: dict[str, int]):
    extent = Extent(list(sizes), list(sizes.values()))
    assert decode_extent(encode_extent(extent)) == extent


def test_no_dimensions_are_no_bytes():
    assert encode_extent(Extent([], [])) == b""
    assert decode_extent(b"") == Extent([], [])


@pytest.mark.parametrize(
    "data", [b"a", b"a\0", b"a\0x\0", b"a\0001", b"\0001\0", b"a\0-1\0", b"\xff"]
)
def test_other_bytes_are_no_extent(data: bytes):
    with pytest.raises(ValueError):
        decode_extent(data)


def test_shapes_are_light_to_import():
    heavy = {"asyncio", "inspect", "dataclasses", "typing", "logging", "subprocess"}
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}; import monarch._shape; "
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    command = [sys.executable, "-ISc", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
