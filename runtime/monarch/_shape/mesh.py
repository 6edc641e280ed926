"""What every mesh can do with its dimensions."""

from __future__ import annotations

from operator import index as to_int

from monarch._shape.extent import Extent, check_labels, unknown_label
from monarch._shape.ndslice import Slice, row_major
from monarch._shape.shape import Shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self

__all__ = ["MeshTrait", "ShapedMesh"]


class MeshTrait:
    """A mesh with named dimensions, of which parts and other views can be had without copying.

    A kind of mesh gives its `_ndslice`, its `_labels` and `_new_with_shape`, which makes the same
    kind of mesh for a part of its ranks; `_title` is how error messages call it.
    """

    __slots__ = ()

    @property
    def _ndslice(self) -> Slice:
        raise NotImplementedError

    @property
    def _labels(self) -> tuple[str, ...]:
        raise NotImplementedError

    def _new_with_shape(self, shape: Shape) -> Self:
        raise NotImplementedError

    def _title(self) -> str:
        return f"{type(self).__name__} {self.extent}"

    def slice(self, **kwargs: Any) -> Self:
        """A part of the mesh: an integer drops its dimension, a slice keeps a range of it.

        `mesh.slice(hosts=0, gpus=slice(2, 6))`. The part is a view of the same base ranks.

        Raises:
            TypeError: the mesh has no such dimension, or a selector is of another type.
            IndexError: an index is negative, or not below the size of its dimension.
            ValueError: a range selects nothing, or its step is not positive.

        """
        shape = Shape(self._labels, self._ndslice)
        for label, selector in kwargs.items():
            if label not in self._labels:
                raise TypeError(self._refusal(f"slice({label}={_shown(selector)})", label))
            try:
                if isinstance(selector, slice):
                    shape = shape.select(label, selector)
                else:
                    shape = shape.at(label, to_int(selector))
            except (IndexError, ValueError) as error:
                raise type(error)(self._said(f"slice({label}={_shown(selector)})", error)) from None
            except TypeError:
                raise TypeError(
                    self._said(
                        f"slice({label}={selector!r})",
                        "a dimension is selected by an integer or a slice of integers",
                    )
                ) from None
        return self._new_with_shape(shape)

    def split(self, **kwargs: Any) -> Self:
        """The same elements, with some dimensions split into several.

        `mesh.split(hosts=("dp", "pp"), pp=2)` splits `hosts`; at most one of the new dimensions
        of a split may have its size left out. Dimensions that are not named stay.

        Raises:
            ValueError: sizes do not multiply to the dimension's, two are left out, a size is of no
                new dimension, or a dimension would be there twice.

        """
        splits, given = self._split_request(kwargs)
        labels: list[str] = []
        sizes: list[int] = []
        strides: list[int] = []
        used: set[str] = set()
        old = self._ndslice
        for label, size, stride in zip(self._labels, old.sizes, old.strides, strict=True):
            names = splits.get(label)
            if names is None:
                names = (label,)
                parts: tuple[int, ...] = (size,)
            else:
                parts = self._part_sizes(label, size, names, given)
                used.update(names)
            labels += names
            sizes += parts
            strides += [stride * step for step in row_major(parts)]
        unused = [name for name in given if name not in used]
        if unused:
            raise ValueError(
                self._refusal(f"split({_arguments(kwargs)})", *unused)
                + ", and nothing is split into it"
            )
        try:
            labels = list(check_labels(labels))
        except ValueError as error:
            raise ValueError(self._said(f"split({_arguments(kwargs)})", error)) from None
        slice_ = Slice(offset=old.offset, sizes=sizes, strides=strides)
        return self._new_with_shape(Shape(labels, slice_))

    def flatten(self, name: str) -> Self:
        """The same elements in one dimension; for meshes whose ranks follow one another.

        Raises:
            ValueError: there are gaps between the base ranks, as after a slice.

        """
        old = self._ndslice
        if not old.dense:
            raise ValueError(
                self._said(
                    f"flatten({name!r})",
                    f"there are gaps between its base ranks {_some(old)}; flatten before slicing, "
                    "or slice fewer dimensions",
                )
            )
        flat = Slice(offset=old.offset, sizes=[len(old)], strides=[1])
        return self._new_with_shape(Shape([name], flat))

    def rename(self, **kwargs: str) -> Self:
        """The same mesh with other names for dimensions: `mesh.rename(hosts="dp")`.

        Raises:
            ValueError: the mesh has no such dimension, or one would be there twice.

        """
        for label in kwargs:
            if label not in self._labels:
                raise ValueError(self._refusal(f"rename({_arguments(kwargs)})", label))
        labels = [kwargs.get(label, label) for label in self._labels]
        try:
            return self._new_with_shape(Shape(labels, self._ndslice))
        except (TypeError, ValueError) as error:
            raise type(error)(self._said(f"rename({_arguments(kwargs)})", error)) from None

    def size(self, dim: str | Sequence[str] | None = None) -> int:
        """The number of elements: of one dimension, of several together, or of all.

        Raises:
            KeyError: the mesh has no such dimension.

        """
        sizes = self._ndslice.sizes
        names = self._labels if dim is None else (dim,) if isinstance(dim, str) else tuple(dim)
        total = 1
        for name in names:
            if name not in self._labels:
                raise KeyError(self._refusal(f"size({dim!r})", name))
            total *= sizes[self._labels.index(name)]
        return total

    @property
    def sizes(self) -> dict[str, int]:
        """Each dimension's size, outermost first."""
        return dict(zip(self._labels, self._ndslice.sizes, strict=True))

    @property
    def extent(self) -> Extent:
        """Labels with sizes."""
        return Extent(self._labels, self._ndslice.sizes)

    def __len__(self) -> int:
        return len(self._ndslice)

    def _said(self, asked: str, why: object) -> str:
        return f"{self._title()}: {asked}: {why}"

    def _refusal(self, asked: str, *names: str) -> str:
        return self._said(asked, unknown_label(names[0], self._labels))

    def _split_request(
        self, kwargs: dict[str, Any]
    ) -> tuple[dict[str, tuple[str, ...]], dict[str, int]]:
        splits: dict[str, tuple[str, ...]] = {}
        given: dict[str, int] = {}
        for key, value in kwargs.items():
            asked = f"split({_arguments(kwargs)})"
            if key in self._labels and not isinstance(value, int):
                if isinstance(value, str):
                    wanted = f"{key} is split into a sequence of names, as ({value!r}, …)"
                    raise ValueError(self._said(asked, wanted))
                splits[key] = tuple(value)
            elif isinstance(value, int) and not isinstance(value, bool):
                given[key] = value
            else:
                raise ValueError(self._refusal(asked, key))
        for label, names in splits.items():
            if not names:
                raise ValueError(self._said(f"split({label}=())", "a dimension has to stay"))
        return splits, given

    def _part_sizes(
        self, label: str, size: int, names: tuple[str, ...], given: dict[str, int]
    ) -> tuple[int, ...]:
        open_names = [name for name in names if name not in given]
        asked = f"split({label}={names!r})"
        if len(open_names) > 1:
            raise ValueError(
                self._said(
                    asked,
                    f"the sizes of {' and '.join(map(repr, open_names))} are both unknown; give "
                    f"one of them, as {open_names[-1]}=2",
                )
            )
        known = 1
        for name in names:
            known *= given.get(name, 1)
        rest, left_over = divmod(size, known) if known > 0 else (0, 1)
        if left_over or (not open_names and rest != 1):
            sizes = ", ".join(f"{name}={given.get(name, '?')}" for name in names)
            raise ValueError(
                self._said(asked, f"{sizes} do not multiply to {size}, the size of {label!r}")
            )
        return tuple(given.get(name, rest) for name in names)


class ShapedMesh(MeshTrait):
    """A mesh that holds its shape as `_shape`."""

    __slots__ = ()
    _shape: Shape

    @property
    def extent(self) -> Extent:
        """Labels with sizes."""
        return self._shape.extent

    @property
    def _ndslice(self) -> Slice:
        return self._shape.ndslice

    @property
    def _labels(self) -> tuple[str, ...]:
        return tuple(self._shape.labels)


def _shown(selector: object) -> str:
    return repr(selector)


def _arguments(kwargs: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in kwargs.items())


def _some(ranks: Slice) -> str:
    shown = [str(ranks.get(place)) for place in range(min(len(ranks), 8))]
    return f"[{', '.join(shown)}{', …' if len(ranks) > 8 else ''}]"
