"""Tensors of torch: their memory goes out of band, and what is special about one is kept."""

from __future__ import annotations

import copyreg
import gc
import pickle
import subprocess
import sys

import pytest

from monarch._actor.actor import Actor
from monarch._actor.decorators import endpoint
from monarch._actor.pickling import dumps, loads
from tests.monarch.actor.rig import spawn, stop

torch = pytest.importorskip("torch", reason="torch is not installed; session elastic has it")
torch.set_num_threads(1)  # no others, which a forked child would wait for

LARGE = 300 << 10  # elements


class Echo(Actor):
    @endpoint
    def same(self, value: object) -> object:
        return value

    @endpoint
    def scribble(self, tensor: torch.Tensor) -> float:
        tensor.zero_()
        return float(tensor.sum())


class Named(torch.Tensor):
    """A subclass, which torch brings back by its own means."""


class Passing:
    """Pickles as a tensor that nobody else has."""

    def __reduce__(self):
        return list, ((torch.full((LARGE,), 7.0),),)


def sent(value):
    """What arrives, the size of the stream, and how many buffers went beside it."""
    data, buffers = dumps(value)
    apart = [bytearray(one) for one in buffers or ()]
    return loads(bytes(data), apart or None), len(data), len(apart)


def with_attribute():
    tensor = torch.ones(3)
    tensor.unit = "kg"
    return tensor


PLAIN = {
    "float32": lambda: torch.arange(LARGE, dtype=torch.float32),
    "bfloat16": lambda: torch.arange(LARGE).to(torch.bfloat16),
    "bool": lambda: torch.arange(LARGE) % 3 == 0,
    "complex": lambda: torch.randn(LARGE, dtype=torch.complex64),
    "transposed": lambda: torch.arange(LARGE).reshape(300, 1024).T,
    "a part": lambda: torch.arange(LARGE).reshape(300, 1024)[10:20, ::3],
    "expanded": lambda: torch.arange(LARGE).reshape(-1, 1).expand(LARGE, 2),
}


@pytest.mark.parametrize("kind", PLAIN)
def test_a_tensor_goes_out_of_band_and_comes_back_as_it_was(kind):
    tensor = PLAIN[kind]()
    got, stream, buffers = sent(tensor)
    assert stream < 1024
    assert buffers == 1
    assert torch.equal(got, tensor)
    assert (got.dtype, got.stride(), got.storage_offset()) == (
        tensor.dtype,
        tensor.stride(),
        tensor.storage_offset(),
    )


SPECIAL = {
    "small": lambda: torch.arange(10.0),
    "a number": lambda: torch.tensor(3.5),
    "empty": lambda: torch.empty(0, 3),
    "trained": lambda: torch.ones(LARGE, requires_grad=True),
    "a parameter": lambda: torch.nn.Parameter(torch.ones(LARGE)),
    "of a subclass": lambda: torch.ones(3).as_subclass(Named),
    "with an attribute": with_attribute,
    "sparse": lambda: torch.eye(4).to_sparse(),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(4), 0.5, 1, torch.quint8),
    "conjugated": lambda: torch.randn(4, dtype=torch.complex64).conj(),
    "negated": lambda: torch.randn(4, dtype=torch.complex64).conj().imag,
    "of no memory": lambda: torch.empty(4, device="meta"),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
}


@pytest.mark.filterwarnings("ignore")  # torch warns of kinds, and of ways, of its own
@pytest.mark.parametrize("kind", SPECIAL)
def test_any_other_tensor_comes_back_as_torch_brings_it_back(kind):
    tensor = SPECIAL[kind]()
    got, _stream, _buffers = sent(tensor)
    wanted = pickle.loads(pickle.dumps(tensor))  # noqa: S301 - torch's own way, for comparison
    assert type(got) is type(wanted)
    assert (repr(got), got.requires_grad, got.__dict__) == (
        repr(wanted),
        wanted.requires_grad,
        wanted.__dict__,
    )


def test_tensors_that_share_memory_share_it_where_they_arrive():
    whole = torch.zeros(LARGE)
    (got, part), _stream, buffers = sent([whole, whole[10:20]])
    assert buffers == 1
    part.fill_(4)
    assert got[10:20].tolist() == [4] * 10
    assert float(got.sum()) == 40


def test_the_weights_of_a_model_go_out_of_band():
    model = torch.nn.Linear(512, 512)
    got, stream, buffers = sent(model)
    assert stream < 8192
    assert buffers == 1
    assert torch.equal(got.weight, model.weight)
    assert isinstance(got.weight, torch.nn.Parameter)


def test_a_function_by_value_takes_its_tensors_along_out_of_band():
    tensor = torch.arange(LARGE)
    got, stream, buffers = sent(lambda: tensor)
    assert buffers == 1
    assert stream < 4096
    assert torch.equal(got(), tensor)


def test_memory_that_only_the_message_has_lasts_as_long_as_that():
    data, buffers = dumps(Passing())
    gc.collect()
    others = [torch.full((LARGE,), 8.0) for _ in range(4)]
    (got,) = loads(data, [bytearray(one) for one in buffers])
    assert got.tolist() == [7.0] * LARGE
    assert len(others) == 4


def test_pickling_by_others_is_as_it_was():
    tensor = torch.ones(LARGE)
    dumps(tensor)
    buffers = []
    assert len(pickle.dumps(tensor, 5, buffer_callback=buffers.append)) > 4 * LARGE
    assert buffers == []


def test_a_way_of_the_programs_own_goes_first(monkeypatch):
    monkeypatch.setitem(copyreg.dispatch_table, torch.Tensor, lambda _tensor: (list, ()))
    assert sent(torch.ones(LARGE))[0] == []


@pytest.mark.parametrize("count", [10, LARGE])
def test_tensors_go_to_an_actor_and_back_and_each_side_has_its_own(procs, count):
    echo = spawn(Echo, procs=procs)
    tensor = torch.arange(count, dtype=torch.float32)
    for _ in range(4):
        got = echo.same.call_one({"weights": [tensor]}).get(timeout=20)["weights"][0]
        assert torch.equal(got, tensor)
        got += 1
        assert echo.scribble.call_one(tensor).get(timeout=20) == 0
        assert tensor[1] == 1
    stop(echo)


def test_a_program_without_torch_does_not_import_it():
    program = """if True:
        import sys
        from monarch.actor import Actor, endpoint, this_host

        class Looks(Actor):
            @endpoint
            def loaded(self, value):
                return "torch" in sys.modules

        if __name__ == "__main__":
            procs = this_host().spawn_procs(per_host={"p": 1})
            print(procs.spawn("looks", Looks).loaded.call_one([1]).get(), "torch" in sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == ("False False\n", "")
