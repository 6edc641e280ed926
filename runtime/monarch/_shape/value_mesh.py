"""`ValueMesh`: one value for each rank, as a call on a mesh gives them."""

# ruff: noqa: SLF001 - meshes of the same class
from __future__ import annotations

from monarch._shape.extent import Point
from monarch._shape.mesh import ShapedMesh
from monarch._shape.ndslice import Slice
from monarch._shape.shape import Shape
from monarch.errors import RankError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Generic, Self, TypeVar

    from monarch._shape.extent import Extent

    R = TypeVar("R")
    T = TypeVar("T")
else:

    class Generic:
        """Stands in for `typing.Generic`, which is slow to import."""

        __slots__ = ()
        __class_getitem__ = classmethod(type(list[int]))

    R = object

__all__ = ["Failed", "Unread", "ValueMesh"]


class Failed:
    """The error of a rank, told apart from a value that happens to be an exception."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __reduce__(self) -> tuple[object, ...]:
        return Failed, (self.error,)


class Unread:
    """A value that is made when it is looked at: `read(*arguments)`."""

    __slots__ = ("arguments", "read")

    def __init__(self, read: Callable[..., Any], *arguments: Any) -> None:
        self.read = read
        self.arguments = arguments


class ValueMesh(ShapedMesh, Generic[R]):
    """Values by rank, with the dimensions of the mesh that gave them.

    Iterating gives pairs of point and value. `slice`, `split`, `flatten` and `rename` give views
    that share the values. Where a call was made with `on_error="collect"`, the value of a rank that
    failed is its error; `errors()` tells which these are.

    Args:
        shape: what the mesh looks like; ranks of a base mesh that it names are not kept.
        values: one for each element of the shape, in order of rank.

    Raises:
        ValueError: there are more or fewer values than the shape has elements.

    """

    __slots__ = ("_cells", "_shape")

    def __init__(self, shape: Shape, values: Iterable[R]) -> None:
        self._shape = Shape.dense(shape.extent)
        self._cells: list[Any] = list(values)
        if len(self._cells) != len(shape):
            raise ValueError(
                f"expected {len(shape)} values, one for each element of {shape.extent}, but "
                f"values contains {len(self._cells)}"
            )

    @staticmethod
    def from_indexed(shape: Shape, pairs: Iterable[tuple[int, T]]) -> ValueMesh[T]:
        """The mesh with these values, given as pairs of rank and value in any order.

        The last one counts where a rank is given more than once.

        Raises:
            RankError: a rank is outside of the shape; an IndexError and a ValueError.
            ValueError: a rank is missing.

        """
        given: dict[int, T] = {}
        for rank, value in pairs:
            if not 0 <= rank < len(shape):
                raise RankError(f"rank {rank} is out of range for extent {shape.extent}")
            given[rank] = value
        missing = [rank for rank in range(len(shape)) if rank not in given]
        if missing:
            raise ValueError(
                f"expected {len(shape)} ranks of {shape.extent}, but pairs contains {len(given)}: "
                f"{missing} are missing"
            )
        return ValueMesh(shape, [given[rank] for rank in range(len(shape))])

    @classmethod
    def over(cls, extent: Extent, cells: list[Any]) -> Self:
        """The mesh of this extent over `cells`, a list by rank that is taken as it is."""
        found = cls.__new__(cls)
        found._shape = Shape.dense(extent)
        found._cells = cells
        return found

    def get(self, rank: int) -> R:
        """The value of a rank of this mesh.

        Raises:
            RankError: there is no such rank; an IndexError and a ValueError.

        """
        try:
            place = self._shape.ndslice.get(rank)
        except IndexError as error:
            raise RankError(self._said(f"get({rank})", error)) from None
        value: R = self._at(place)
        return value

    def item(self, **kwargs: int) -> R:
        """The value at one index for each dimension; `item()` where there are none.

        Raises:
            KeyError: a dimension is left out, or the mesh has none of that name.
            IndexError: an index is out of range.

        """
        asked = ", ".join(f"{label}={at!r}" for label, at in kwargs.items())
        missing = [label for label in self._labels if label not in kwargs]
        if missing:
            wanted = f"an index is needed for {', '.join(map(repr, missing))}"
            raise KeyError(self._said(f"item({asked})", wanted))
        for label in kwargs:
            if label not in self._labels:
                raise KeyError(self._refusal(f"item({asked})", label))
        try:
            place = self._shape.ndslice.nditem([kwargs[label] for label in self._labels])
        except IndexError as error:
            raise IndexError(self._said(f"item({asked})", error)) from None
        value: R = self._at(place)
        return value

    def items(self) -> Iterator[tuple[Point, R]]:
        """Pairs of point and value, in order of rank."""
        extent = self.extent
        for rank, place in enumerate(self._shape.ranks()):
            yield Point(rank, extent), self._at(place)

    def values(self) -> list[R]:
        """The values, in order of rank."""
        return [self._at(place) for place in self._shape.ranks()]

    def errors(self) -> Iterator[tuple[Point, BaseException]]:
        """Pairs of point and error of the ranks that failed, in order of rank."""
        extent = self.extent
        for rank, place in enumerate(self._shape.ranks()):
            cell = self._cells[place]
            if type(cell) is Failed:
                yield Point(rank, extent), cell.error

    def __iter__(self) -> Iterator[tuple[Point, R]]:
        return self.items()

    def __repr__(self) -> str:
        from pprint import pformat  # noqa: PLC0415 - costs as much as the whole module

        body = pformat(tuple(self.items())).replace("\n", "\n  ")
        return f"ValueMesh({self.extent}):\n  {body}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._labels, self._ndslice.sizes, self._picked())

    def _at(self, place: int) -> Any:
        cell = self._cells[place]
        kind = type(cell)
        if kind is Failed:
            return cell.error
        if kind is not Unread:
            return cell
        value = cell.read(*cell.arguments)
        self._cells[place] = value
        return value

    def _picked(self) -> list[Any]:
        cells = self._cells
        for place in self._shape.ranks():
            if type(cells[place]) is Unread:
                self._at(place)
        return [cells[place] for place in self._shape.ranks()]

    def _new_with_shape(self, shape: Shape) -> Self:
        found = self.__class__.__new__(self.__class__)
        found._shape = shape
        found._cells = self._cells
        return found


def _rebuild(labels: tuple[str, ...], sizes: list[int], cells: list[Any]) -> ValueMesh[Any]:
    return ValueMesh(Shape(labels, Slice.new_row_major(sizes)), cells)
