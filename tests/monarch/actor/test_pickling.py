"""What can be sent, and how an error names what cannot."""

from __future__ import annotations

import array
import pickle
import threading

import numpy as np
import pytest

from monarch._actor.actor import Actor
from monarch._actor.decorators import endpoint
from monarch._actor.pickling import PicklingError, dumps, loads, outline, pack
from monarch.errors import ActorError, RemoteError
from tests.monarch.actor.rig import spawn


class Holder:
    def __init__(self, value: object) -> None:
        self.value = value


class Slotted:
    __slots__ = ("inner",)

    def __init__(self, inner: object) -> None:
        self.inner = inner


class Refuses:
    def __reduce__(self):
        raise OSError("not me")


class Wraps:
    def __init__(self, value: object) -> None:
        self.value = value

    def __reduce__(self):
        return Wraps, (self.value,)


class QuietError(Exception):
    """Pickles, and cannot be made again: its constructor wants what it does not keep."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text} ({code})")


class LockedError(Exception):
    def __init__(self) -> None:
        super().__init__("locked")
        self.lock = threading.Lock()


class MuteError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Echo(Actor):
    @endpoint
    def echo(self, value: object, other: object = None) -> object:
        return value if other is None else other

    @endpoint
    def lock(self) -> object:
        return {"deep": [threading.Lock()]}

    @endpoint
    def refuse(self) -> object:
        return Refuses()

    @endpoint
    def stumble(self) -> float:
        try:
            return 1 / 0
        except ZeroDivisionError:
            raise KeyError("second")  # noqa: B904 - as many a program does

    @endpoint
    def raises(self, name: str) -> None:
        cause = {"quiet": lambda: QuietError(3, "hush"), "locked": LockedError, "mute": MuteError}[
            name
        ]()
        raise cause from KeyError("root")

    @endpoint
    def shout(self, length: int) -> None:
        raise ValueError("a" * length + " and the end") from KeyError("b" * length)

    @endpoint
    def group(self) -> None:
        raise ExceptionGroup("several", [ValueError("one"), KeyError("two")])


def make_function(value: object):
    return lambda: value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (threading.Lock(), "argument 'value'"),
        ([1, {"key": (threading.Lock(),)}], "argument 'value'[1]['key'][0]"),
        (Holder(Slotted(threading.Lock())), "argument 'value'.value.inner"),
        (make_function(threading.Lock()), "argument 'value' (its variable 'value')"),
        (Wraps([threading.Lock()]), "argument 'value'[0][0]"),
        ({1: threading.Lock()}, "argument 'value'[1]"),
    ],
)
@pytest.mark.report("65")
def test_an_argument_that_cannot_be_pickled_is_named_at_the_call(value, path):
    echo = spawn(Echo)
    with pytest.raises(TypeError) as caught:
        echo.echo.call_one(value)
    assert f"Echo.echo: {path} cannot be pickled" in str(caught.value)
    with pytest.raises(TypeError, match="argument 'other' cannot"):
        echo.echo.broadcast(1, other=threading.Lock())
    assert echo.echo.call_one("still there").get(timeout=20) == "still there"


def test_an_error_of_the_arguments_own_code_stays_and_names_the_argument_in_a_note():
    echo = spawn(Echo)
    with pytest.raises(OSError, match="not me") as caught:
        echo.echo.call_one([Refuses()])
    (note,) = caught.value.__notes__
    assert note.startswith("Echo.echo: argument 'value'[0] cannot be pickled. ")
    assert echo.echo.call_one("still there").get(timeout=20) == "still there"


def test_a_result_whose_own_code_refuses_arrives_as_its_error(procs):
    echo = spawn(Echo, procs=procs)
    with pytest.raises(ActorError) as caught:
        echo.refuse.call_one().get(timeout=20)
    assert isinstance(caught.value.exception, OSError)
    assert "result cannot be pickled" in caught.value.exception_formatted


def test_a_chain_of_errors_reads_as_python_prints_it(procs):
    echo = spawn(Echo, procs=procs)
    with pytest.raises(ActorError) as caught:
        echo.raises.call_one("quiet").get(timeout=20)
    first, last = caught.value.exception_formatted.split(
        "\nThe above exception was the direct cause of the following exception:\n\n"
    )
    assert first == "KeyError: 'root'\n"
    assert last.endswith("QuietError: hush (3)\n")
    with pytest.raises(ActorError) as caught:
        echo.stumble.call_one().get(timeout=20)
    first, last = caught.value.exception_formatted.split(
        "\nDuring handling of the above exception, another exception occurred:\n\n"
    )
    assert first.endswith("ZeroDivisionError: division by zero\n")
    assert last.endswith("KeyError: 'second'\n")


def test_a_result_that_cannot_be_pickled_is_named_to_the_caller(procs):
    echo = spawn(Echo, procs=procs)
    with pytest.raises(ActorError, match=r"result\['deep'\]\[0\] cannot be pickled") as caught:
        echo.lock.call_one().get(timeout=20)
    assert "File" not in caught.value.exception_formatted  # no line of the program raised it
    last = caught.value.exception_formatted.splitlines()[-1]
    assert last.startswith("monarch._actor.pickling.PicklingError: ")
    assert echo.echo.call_one(1).get(timeout=20) == 1


@pytest.mark.parametrize(
    ("name", "type_name", "text"),
    [
        ("quiet", "test_pickling.QuietError", "hush (3)"),
        ("locked", "test_pickling.LockedError", "locked"),
        ("mute", "test_pickling.MuteError", "its text failed with ValueError"),
    ],
)
def test_an_exception_that_cannot_be_sent_arrives_with_type_text_and_traceback(
    procs, name, type_name, text
):
    with pytest.raises(ActorError) as caught:
        spawn(Echo, procs=procs).raises.call_one(name).get(timeout=20)
    error = caught.value
    if isinstance(error.exception, RemoteError):
        assert error.exception.type_name.endswith(type_name)
    else:
        assert name == "mute"
    assert text in str(error)
    assert "in raises" in error.exception_formatted
    assert "KeyError: 'root'" in error.exception_formatted


def test_a_very_long_text_arrives_shortened_and_says_so(procs):
    with pytest.raises(ActorError) as caught:
        spawn(Echo, procs=procs).shout.call_one(10_000_000).get(timeout=20)
    text = str(caught.value)
    assert len(text) < 200_000
    assert f"{10_000_012 - (16 << 10)} characters left out here" in text
    assert "aaaa and the end" in text
    assert "KeyError: 'bbbb" in text
    assert len(str(caught.value.exception)) == 10_000_012


def test_an_exception_group_arrives_whole(procs):
    with pytest.raises(ActorError) as caught:
        spawn(Echo, procs=procs).group.call_one().get(timeout=20)
    assert [type(e) for e in caught.value.exception.exceptions] == [ValueError, KeyError]
    assert "ValueError: one" in caught.value.exception_formatted


def test_functions_go_by_value_and_keep_their_file(procs):
    echo = spawn(Echo, procs=procs)
    function = echo.echo.call_one(make_function(5)).get(timeout=20)
    assert function() == 5
    assert function.__code__.co_filename == __file__


@pytest.mark.parametrize("size", [0, 1, 100, 70_000, 5_000_000])
@pytest.mark.parametrize("kind", [bytes, bytearray, lambda data: array.array("B", data)])
def test_payloads_of_all_sizes_come_back_equal_and_of_their_type(procs, size, kind):
    value = kind(bytes(range(256)) * (size // 256) + b"x" * (size % 256))
    back = spawn(Echo, procs=procs).echo.call_one(value).get(timeout=20)
    assert type(back) is type(value)
    assert back == value


def test_arrays_come_out_of_band_and_can_be_written(procs):
    value = np.arange(200_000, dtype=np.int32).reshape(1000, 200)
    for sent in (value, value.T, value[::2, ::3]):
        back = spawn(Echo, procs=procs).echo.call_one({"a": sent, "b": [sent]}).get(timeout=20)
        assert (back["a"] == sent).all()
        assert (back["b"][0] == sent).all()
        back["a"][0, 0] = 7


def test_out_of_band_buffers_are_left_where_they_are():
    data = bytearray(b"abc" * 1000)

    class Wide:
        def __reduce_ex__(self, protocol):
            return bytearray, (pickle.PickleBuffer(data),)

    packed, buffers = dumps(Wide.__reduce_ex__(None, 5))
    assert len(packed) < 200
    assert bytes(buffers[0]) == bytes(data)
    assert loads(packed, buffers)[1][0] == data
    assert loads(pack(data)) == data


def test_an_outline_has_what_is_plain_without_making_the_rest():
    def never():
        raise AssertionError("called")

    class Maker:
        def __reduce__(self):
            return never, ()

    data, buffers = dumps((Maker(), [Holder({1: Wraps(2)})], {"n": (1, "two")}, array.array("B")))
    assert outline(data, buffers)[2] == {"n": (1, "two")}


def test_pickling_errors_are_type_errors():
    with pytest.raises(PicklingError, match=r"value\[0\] cannot be pickled"):
        dumps([threading.Lock()])
    assert issubclass(PicklingError, TypeError)
