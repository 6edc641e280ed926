from __future__ import annotations

import copy
import pickle

import pytest

from monarch import errors
from monarch._failure import MeshFailure

EXAMPLES = {
    "ActorCrashError": errors.ActorCrashError("what", MeshFailure("lost", "w", (1,)), (1,), "step"),
    "DeadlockError": errors.DeadlockError("what", ("A.x", "B.y"), "x"),
    "SupervisionError": errors.SupervisionError("what", None, (2,), "step"),
    "MonarchError": errors.MonarchError("what"),
    "ConflictError": errors.ConflictError("what"),
    "RuntimeLibraryError": errors.RuntimeLibraryError("what"),
    "GpuError": errors.GpuError("what", "no_device", "counting"),
    "FrameError": errors.FrameError("limit", "what"),
    "RemoteError": errors.RemoteError("some.Error", "what", "why"),
    "StoppedError": errors.StoppedError("what"),
    "ActorError": errors.ActorError(ValueError("what"), "said", "formatted"),
    "SecretError": errors.SecretError("what"),
    "AddressError": errors.AddressError("what"),
    "UnsupportedAddressError": errors.UnsupportedAddressError("what"),
    "JobError": errors.JobError("what"),
    "JobStateError": errors.JobStateError("what"),
    "LabelError": errors.LabelError("what"),
    "RankError": errors.RankError("what"),
    "LinkError": errors.LinkError("secret", "what"),
}


def test_every_public_error_has_an_example_here():
    assert set(EXAMPLES) == set(errors.__all__)


@pytest.mark.parametrize("name", EXAMPLES)
def test_errors_share_a_root_and_survive_pickling_and_copying(name):
    error = EXAMPLES[name]
    assert isinstance(error, errors.MonarchError)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 - made here
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert repr(vars(other)) == repr(vars(error))


def test_messages_are_for_people_and_codes_for_programs():
    assert str(EXAMPLES["GpuError"]) == "counting: what"
    assert str(errors.GpuError("what", "no_device")) == "what"
    assert str(EXAMPLES["FrameError"]) == "what"
    assert EXAMPLES["FrameError"].code == "limit"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ConflictError", ImportError),
        ("RuntimeLibraryError", ImportError),
        ("ActorCrashError", RuntimeError),
        ("DeadlockError", RuntimeError),
        ("GpuError", RuntimeError),
        ("SupervisionError", RuntimeError),
        ("FrameError", ValueError),
        ("SecretError", OSError),
        ("AddressError", ValueError),
        ("UnsupportedAddressError", NotImplementedError),
        ("JobError", RuntimeError),
        ("JobStateError", ValueError),
        ("LinkError", ConnectionError),
    ],
)
def test_errors_are_of_the_builtin_kind_that_callers_expect(name, kind):
    assert isinstance(EXAMPLES[name], kind)
