"""`Extent`: named sizes of a mesh. `Point`: one place in it."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index as to_int

from monarch.errors import LabelError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from monarch._shape.shape import Region, Shape

__all__ = ["Extent", "Point"]


class Extent(Mapping[str, int]):
    """The dimensions of a mesh, outermost first: a mapping from label to size. Immutable.

    Raises:
        ValueError: labels and sizes differ in number, a label is empty or given twice, or a size
            is negative.
        TypeError: a label is no string, or a size is no integer.

    """

    __slots__ = ("_dense", "_labels", "_nelements", "_sizes", "_wire")

    _dense: Shape
    _wire: bytes

    def __init__(self, labels: Sequence[str], sizes: Sequence[int]) -> None:
        self._labels = check_labels(labels)
        self._sizes = tuple(map(to_int, sizes))
        if len(self._labels) != len(self._sizes):
            raise ValueError(
                f"an extent has one size for each label, got labels {list(self._labels)} and sizes "
                f"{list(self._sizes)}"
            )
        if min(self._sizes, default=0) < 0:
            raise ValueError(f"sizes are not negative, got {self!r}")
        nelements = 1
        for size in self._sizes:
            nelements *= size
        self._nelements = nelements

    @property
    def nelements(self) -> int:
        """The number of elements: the product of the sizes, 1 without dimensions."""
        return self._nelements

    @property
    def labels(self) -> list[str]:
        """The names of the dimensions, outermost first."""
        return list(self._labels)

    @property
    def sizes(self) -> list[int]:
        """The sizes of the dimensions, outermost first."""
        return list(self._sizes)

    @property
    def region(self) -> Region:
        """The dense region of this extent."""
        from monarch._shape.ndslice import Slice  # noqa: PLC0415 - a region knows extents
        from monarch._shape.shape import Region  # noqa: PLC0415

        return Region(self._labels, Slice.new_row_major(self._sizes))

    def __getitem__(self, label: str) -> int:
        try:
            return self._sizes[self._labels.index(label)]
        except ValueError:
            raise LabelError(unknown_label(label, self._labels)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels)

    def __len__(self) -> int:
        return len(self._labels)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Extent):
            return self._labels == other._labels and self._sizes == other._sizes
        if isinstance(other, Mapping):
            return dict(self) == dict(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self._labels, self._sizes))

    def __repr__(self) -> str:
        return repr(dict(zip(self._labels, self._sizes, strict=False)))

    def __reduce__(self) -> tuple[object, ...]:
        return Extent, (self._labels, self._sizes)


class Point(Mapping[str, int]):
    """One place in an extent: a mapping from label to index. Immutable.

    `rank` is its place in row-major order.

    Raises:
        ValueError: the rank is negative, or not below the extent's number of elements.

    """

    __slots__ = ("_extent", "_rank")

    def __init__(self, rank: int, extent: Extent) -> None:
        self._rank = to_int(rank)
        self._extent = extent
        if not 0 <= self._rank < extent.nelements:
            raise ValueError(f"rank {rank} is out of range for extent {extent}")

    @property
    def rank(self) -> int:
        """The place in row-major order."""
        return self._rank

    @property
    def extent(self) -> Extent:
        """The extent that this is a point of."""
        return self._extent

    def size(self, label: str) -> int:
        """The size of a dimension.

        Raises:
            LabelError: the extent has no such dimension; a KeyError and a ValueError.

        """
        return self._extent[label]

    def __getitem__(self, label: str) -> int:
        extent = self._extent
        rank = self._rank
        for name, size in zip(reversed(extent._labels), reversed(extent._sizes), strict=True):  # noqa: SLF001
            rank, at = divmod(rank, size)
            if name == label:
                return at
        raise LabelError(unknown_label(label, extent._labels))  # noqa: SLF001

    def __iter__(self) -> Iterator[str]:
        return iter(self._extent)

    def __len__(self) -> int:
        return len(self._extent)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Point):
            return self._rank == other._rank and self._extent == other._extent
        if isinstance(other, Mapping):
            return dict(self) == dict(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self._rank, self._extent))

    def __repr__(self) -> str:
        places = ", ".join(f"{label!r}: {self[label]}/{self._extent[label]}" for label in self)
        return f"{{{places}}}"

    def __reduce__(self) -> tuple[object, ...]:
        return Point, (self._rank, self._extent)


def check_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """The labels as a tuple, each checked to be a non-empty string given once."""
    if isinstance(labels, str):
        raise TypeError(f"labels are a sequence of strings, got the string {labels!r}")
    checked = tuple(labels)
    for label in checked:
        if not isinstance(label, str):
            raise TypeError(f"a label is a string, got {label!r} in {list(checked)}")
        if not label or "\0" in label:
            raise ValueError(f"a label has at least one character and no NUL, got {list(checked)}")
    if len(set(checked)) != len(checked):
        twice = next(label for label in checked if checked.count(label) > 1)
        raise ValueError(f"dimension {twice!r} is given twice in {list(checked)}")
    return checked


def unknown_label(label: object, labels: Sequence[str]) -> str:
    """What to say about a label that is not there."""
    known = ", ".join(map(repr, labels)) or "none"
    return f"no dimension {label!r}; the dimensions are {known}"
