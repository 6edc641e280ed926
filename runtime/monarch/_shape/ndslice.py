"""`Slice`: a regular selection of base ranks, by offset, sizes and strides."""

from __future__ import annotations

from operator import index as to_int

from monarch.errors import RankError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import overload
else:

    def overload(function: object) -> object:
        return function


__all__ = ["NDSlice", "Slice"]


class Slice:
    """Which ranks of a base mesh a mesh holds: `offset + sum(index * stride)` over its dimensions.

    Ranks run in row-major order of the indices. Immutable.

    Raises:
        ValueError: sizes and strides differ in length, or a number is negative.

    """

    __slots__ = ("_length", "_offset", "_sizes", "_strides")

    def __init__(self, *, offset: int, sizes: Iterable[int], strides: Iterable[int]) -> None:
        self._offset = to_int(offset)
        self._sizes = tuple(map(to_int, sizes))
        self._strides = tuple(map(to_int, strides))
        if len(self._sizes) != len(self._strides):
            raise ValueError(
                f"a slice has one stride for each size, got sizes {list(self._sizes)} and strides "
                f"{list(self._strides)}"
            )
        if min((self._offset, *self._sizes, *self._strides)) < 0:
            raise ValueError(f"offset, sizes and strides are not negative, got {self!r}")
        length = 1
        for size in self._sizes:
            length *= size
        self._length = length

    @staticmethod
    def new_row_major(sizes: Iterable[int]) -> Slice:
        """The dense slice of these sizes, from rank 0."""
        sizes = tuple(sizes)
        return Slice(offset=0, sizes=sizes, strides=row_major(sizes))

    @staticmethod
    def from_list(ranks: Sequence[int]) -> list[Slice]:
        """One-dimensional slices that together give `ranks` in their order."""
        found = []
        start = 0
        while start < len(ranks):
            end = start + 1
            step = ranks[end] - ranks[start] if end < len(ranks) else 1
            if step <= 0:
                step = 1
            while end < len(ranks) and ranks[end] - ranks[end - 1] == step:
                end += 1
            found.append(Slice(offset=ranks[start], sizes=[end - start], strides=[step]))
            start = end
        return found

    @property
    def ndim(self) -> int:
        """How many dimensions there are."""
        return len(self._sizes)

    @property
    def offset(self) -> int:
        """The rank of the first element."""
        return self._offset

    @property
    def sizes(self) -> list[int]:
        """The size of each dimension."""
        return list(self._sizes)

    @property
    def strides(self) -> list[int]:
        """How far the rank moves with one step in each dimension."""
        return list(self._strides)

    def get(self, index: int) -> int:
        """The rank at a place in row-major order; the inverse of `index`.

        Raises:
            RankError: there is no such place; an IndexError and a ValueError.

        """
        place = to_int(index)
        if not 0 <= place < self._length:
            raise RankError(f"index {place} is out of range for {self._length} elements")
        rank = self._offset
        for size, stride in zip(reversed(self._sizes), reversed(self._strides), strict=True):
            place, at = divmod(place, size)
            rank += at * stride
        return rank

    def index(self, value: int) -> int:
        """The place of a rank in row-major order; the inverse of `get`.

        Raises:
            ValueError: the rank is not in this slice.

        """
        place = 0
        for at, size in zip(self.coordinates(value), self._sizes, strict=True):
            place = place * size + at
        return place

    def coordinates(self, value: int) -> list[int]:
        """The indices of a rank, one for each dimension.

        Raises:
            ValueError: the rank is not in this slice.

        """
        rank = to_int(value)
        rest = rank - self._offset
        at = [0] * len(self._sizes)
        if rest < 0 or not self._length:
            raise ValueError(f"rank {value} is not in {self!r}")
        # Greedy by the widest stride: exact for every part of a dense mesh.
        for dim in sorted(range(len(at)), key=self._strides.__getitem__, reverse=True):
            if self._strides[dim]:
                at[dim] = min(rest // self._strides[dim], self._sizes[dim] - 1)
                rest -= at[dim] * self._strides[dim]
        return self._searched(rank) if rest else at

    def _searched(self, rank: int) -> list[int]:
        """As `coordinates`, for strides that overlap, which no part of a dense mesh has."""
        try:
            place = self.ranks().index(rank)
        except ValueError:
            raise ValueError(f"rank {rank} is not in {self!r}") from None
        at = []
        for size in reversed(self._sizes):
            place, here = divmod(place, size)
            at.append(here)
        return at[::-1]

    def nditem(self, coordinates: Sequence[int]) -> int:
        """The rank at these indices, one for each dimension.

        Raises:
            IndexError: their number is wrong, or one is out of range.

        """
        if len(coordinates) != len(self._sizes):
            raise IndexError(f"wanted {len(self._sizes)} indices, got {list(coordinates)}")
        rank = self._offset
        for at, size, stride in zip(coordinates, self._sizes, self._strides, strict=True):
            if not 0 <= at < size:
                raise IndexError(f"indices {list(coordinates)} are out of range of {self.sizes}")
            rank += at * stride
        return rank

    def ranks(self) -> list[int]:
        """All ranks, in row-major order."""
        ranks = [self._offset]
        for size, stride in zip(self._sizes, self._strides, strict=True):
            steps = range(0, size * stride, stride) if stride else [0] * size
            ranks = [rank + step for rank in ranks for step in steps]
        return ranks

    @property
    def dense(self) -> bool:
        """True where the ranks follow one another without gaps, in row-major order."""
        wanted = 1
        for size, stride in zip(reversed(self._sizes), reversed(self._strides), strict=True):
            if size != 1 and stride != wanted:
                return False
            wanted *= size
        return True

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[int, ...]: ...  # noqa: F811 - typing's overload
    def __getitem__(self, at: int | slice) -> int | tuple[int, ...]:  # noqa: F811
        if isinstance(at, slice):
            return tuple(map(self.get, range(*at.indices(self._length))))
        return self.get(at)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        return iter(self.ranks())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Slice):
            return NotImplemented
        return (self._offset, self._sizes, self._strides) == (
            other._offset,
            other._sizes,
            other._strides,
        )

    def __hash__(self) -> int:
        return hash((self._offset, self._sizes, self._strides))

    def __repr__(self) -> str:
        return f"Slice(offset={self._offset}, sizes={self.sizes}, strides={self.strides})"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._offset, self._sizes, self._strides)


NDSlice = Slice


def _rebuild(offset: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Slice:
    return Slice(offset=offset, sizes=sizes, strides=strides)


def row_major(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a dense mesh of these sizes."""
    strides = []
    stride = 1
    for size in reversed(sizes):
        strides.append(stride)
        stride *= size
    return tuple(reversed(strides))
