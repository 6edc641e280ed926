"""`Shape` and `Region`: labels together with the base ranks that they select."""

from __future__ import annotations

from operator import index as to_int

from monarch._shape.extent import Extent, Point, check_labels, unknown_label
from monarch._shape.ndslice import Slice
from monarch.errors import LabelError, RankError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Region", "Shape"]


class _Labelled:
    """Labels and the slice that they name the dimensions of."""

    __slots__ = ("_extent", "_labels", "_slice")

    _extent: Extent

    def __init__(self, labels: Sequence[str], slice: Slice) -> None:  # noqa: A002 - public name
        self._labels = check_labels(labels)
        self._slice = slice
        if len(self._labels) != slice.ndim:
            raise ValueError(f"labels {list(self._labels)} do not fit {slice}: one for each size")

    @property
    def labels(self) -> list[str]:
        """The names of the dimensions, outermost first."""
        return list(self._labels)

    @property
    def extent(self) -> Extent:
        """Labels with sizes, without what they select."""
        try:
            return self._extent
        except AttributeError:
            self._extent = found = Extent(self._labels, self._slice.sizes)
            return found

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, _Labelled)  # noqa: S101 - for the type checker
        return self._labels == other._labels and self._slice == other._slice

    def __hash__(self) -> int:
        return hash((self._labels, self._slice))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.labels}, {self._slice})"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._labels, self._slice)


class Region(_Labelled):
    """A part of a base mesh: labels and the base ranks that it holds. Immutable."""

    __slots__ = ()

    def slice(self) -> Slice:
        """The base ranks, by offset, sizes and strides."""
        return self._slice

    def as_shape(self) -> Shape:
        """The same part as a `Shape`."""
        return Shape(self._labels, self._slice)

    def point_of_base_rank(self, rank: int) -> Point:
        """The point of this region at which a rank of the base mesh lies.

        Raises:
            ValueError: the rank is not in this region.

        """
        return Point(self._slice.index(rank), self.extent)


class Shape(_Labelled):
    """Labels and the base ranks that they select, with what makes smaller shapes of it. Immutable.

    Raises:
        ValueError: the number of labels is not that of the dimensions, or a label is given twice.

    """

    __slots__ = ()

    @staticmethod
    def unity() -> Shape:
        """The shape of one element and no dimension."""
        return Shape((), Slice.new_row_major(()))

    @staticmethod
    def dense(extent: Extent) -> Shape:
        """The shape of all elements of an extent, in order; made once for an extent."""
        try:
            return extent._dense  # noqa: SLF001 - made once and kept there
        except AttributeError:
            found = Shape(extent.labels, Slice.new_row_major(extent.sizes))
            found._extent = extent
            extent._dense = found  # noqa: SLF001
            return found

    @property
    def ndslice(self) -> Slice:
        """The base ranks, by offset, sizes and strides."""
        return self._slice

    @property
    def region(self) -> Region:
        """The same part as a `Region`."""
        return Region(self._labels, self._slice)

    def ranks(self) -> list[int]:
        """All base ranks, in row-major order."""
        return self._slice.ranks()

    def coordinates(self, rank: int) -> dict[str, int]:
        """The indices, by label, at which a base rank lies.

        Raises:
            ValueError: the rank is not in this shape.

        """
        return dict(zip(self._labels, self._slice.coordinates(rank), strict=True))

    def at(self, label: str, index: int) -> Shape:
        """One index of a dimension; the dimension is gone afterwards.

        Raises:
            LabelError: there is no such dimension; a KeyError and a ValueError.
            RankError: the index is negative, or not below the size; an IndexError and a ValueError.

        """
        dim = self._dim(label)
        place = to_int(index)
        sizes, strides = self._slice.sizes, self._slice.strides
        if not 0 <= place < sizes[dim]:
            raise RankError(
                f"index {place} of dimension {label!r} is out of range 0 to {sizes[dim] - 1}"
            )
        offset = self._slice.offset + place * strides[dim]
        del sizes[dim], strides[dim]
        return Shape(
            self._labels[:dim] + self._labels[dim + 1 :],
            Slice(offset=offset, sizes=sizes, strides=strides),
        )

    def select(self, label: str, slice: slice) -> Shape:  # noqa: A002 - public name
        """A range of a dimension, as Python slices sequences; the dimension stays.

        Raises:
            LabelError: there is no such dimension; a KeyError and a ValueError.
            ValueError: the step is negative or zero, or nothing would be left.

        """
        dim = self._dim(label)
        sizes, strides = self._slice.sizes, self._slice.strides
        if slice.step is not None and slice.step <= 0:
            raise ValueError(f"the step of dimension {label!r} is positive, got {slice.step}")
        start, stop, step = slice.indices(sizes[dim])
        left = len(range(start, stop, step))
        if not left:
            raise ValueError(
                f"nothing of dimension {label!r} of size {sizes[dim]} is in {_text(slice)}"
            )
        offset = self._slice.offset + start * strides[dim]
        sizes[dim] = left
        strides[dim] *= step
        return Shape(self._labels, Slice(offset=offset, sizes=sizes, strides=strides))

    def index(self, **kwargs: int) -> Shape:
        """One index for each dimension named; those dimensions are gone afterwards."""
        shape = self
        for label, place in kwargs.items():
            shape = shape.at(label, place)
        return shape

    def __len__(self) -> int:
        return len(self._slice)

    def _dim(self, label: str) -> int:
        try:
            return self._labels.index(label)
        except ValueError:
            raise LabelError(unknown_label(label, self._labels)) from None


def _text(part: slice) -> str:
    step = "" if part.step is None else f":{part.step}"
    ends = ["" if end is None else str(end) for end in (part.start, part.stop)]
    return f"{ends[0]}:{ends[1]}{step}"
