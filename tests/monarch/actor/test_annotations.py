"""Arguments of another type than annotated: refused where the call is made, or let through."""

from __future__ import annotations

import fractions
from typing import TYPE_CHECKING, Any, Optional, Union

import pytest

from monarch._actor.actor import Actor
from monarch._actor.decorators import endpoint
from monarch._actor.signature import Method
from tests.monarch.actor.rig import spawn

if TYPE_CHECKING:
    from nowhere import Missing


class Whole:
    """What counts as an integer, as numbers of numpy do."""

    def __index__(self) -> int:
        return 3


class Typed(Actor):
    @endpoint
    def text(self, text: str, times: int = 1) -> str:
        return text * times

    @endpoint
    def real(self, x: float, *, exact: bool = False) -> float:
        return x if exact else float(x)

    @endpoint
    def maybe(self, a: int | None, b: Optional[str] = "", c: Union[int, str] = 0) -> Any:  # noqa: UP007, UP045
        return a, b, c

    @endpoint
    def late(self, name: str = None) -> str | None:  # noqa: RUF013 - as many programs have it
        return name

    @endpoint
    def many(self, items: list, named: dict, raw: bytes = b"") -> int:
        return len(items) + len(named) + len(raw)

    @endpoint
    def anything(self, a: Missing, b: Typed, c: list[int], d: Any, e: int | Missing, f) -> str:
        return str((a, b, c, d, e, f))

    @endpoint
    def plain(self, a, b):
        return a, b


WRONG = [
    (
        lambda t: t.text.call_one(3),
        r"text\(text: str, .*\): 'text' takes str, not int 3",
    ),
    (lambda t: t.text.call("a", "2"), r"'times' takes int, not str '2'"),
    (lambda t: t.text.broadcast(text="a", times=2.5), "'times' takes int, not float 2.5"),
    (lambda t: t.text.choose(None), "'text' takes str, not NoneType"),
    (lambda t: t.text.stream(b"a"), "'text' takes str, not bytes"),
    (lambda t: t.real.call_one("1.0"), "'x' takes float, not str"),
    (lambda t: t.real.call_one(1.0, exact="yes"), "'exact' takes bool, not str"),
    (lambda t: t.maybe.call_one("1"), "'a' takes int or None, not str"),
    (lambda t: t.maybe.call_one(1, 2), "'b' takes str or None, not int"),
    (lambda t: t.maybe.call_one(1, "", []), "'c' takes int or str, not list"),
    (lambda t: t.many.call_one("abc", {}), "'items' takes list, not str"),
    (lambda t: t.many.call_one(3, {}), "'items' takes list, not int"),
    (lambda t: t.many.call_one([], []), "'named' takes dict, not list"),
    (lambda t: t.many.call_one([], {}, "raw"), "'raw' takes bytes, not str"),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_an_argument_of_another_type_than_annotated_raises_where_the_call_is_made(call, text):
    with pytest.raises(TypeError, match=text):
        call(spawn(Typed))


def test_what_stands_in_for_an_annotated_type_is_taken(procs):
    actor = spawn(Typed, procs=procs)
    assert actor.text.call_one("a", True).get(timeout=20) == "a"
    assert actor.real.call_one(3).get(timeout=20) == 3
    assert actor.real.call_one(fractions.Fraction(1, 2), exact=1).get(timeout=20) == 0.5
    assert actor.maybe.call_one(None, None, "x").get(timeout=20) == (None, None, "x")
    assert actor.late.call_one(None).get(timeout=20) is None
    assert actor.many.call_one((1, 2), {"a": 1}, bytearray(b"xy")).get(timeout=20) == 5


def test_an_annotation_that_is_generic_or_names_nothing_known_is_not_checked(procs):
    actor = spawn(Typed, procs=procs)
    taken = actor.anything.call_one(1, 2, "abc", 4, "five", 6).get(timeout=20)
    assert taken == "(1, 2, 'abc', 4, 'five', 6)"


def test_the_arguments_of_a_constructor_are_checked_where_the_actor_is_spawned(procs):
    class Made(Actor):
        def __init__(self, size: int) -> None:
            self.size = size

    from monarch._mesh.proc_mesh import check_class  # noqa: PLC0415 - of a higher floor

    with pytest.raises(TypeError, match="'size' takes int, not str"):
        check_class(None, "made", Made, ("3",), {})  # type: ignore[arg-type]


def test_an_endpoint_without_annotations_to_check_pays_for_none():
    plain = Method(Typed.plain, "plain")
    assert (plain.low, plain.high) == (2, 2)
    untold = Method(Typed.anything, "anything")
    untold.check((1, 2, 3, 4, 5, 6), {})
    assert (untold.low, untold.high) == (6, 6)


def test_numbers_that_are_no_ints_of_python_are_taken_as_such():
    method = Method(Typed.text, "text")
    method.check(("a", Whole()), {})
    with pytest.raises(TypeError, match="'times' takes int"):
        method.check(("a", fractions.Fraction(1, 2)), {})
