"""A pytest plugin for programs that use this package: fixtures `cluster` and `no_leaks`.

With it, a failure that nobody handles fails the test that runs, instead of ending the test run.
It is loaded with the package; `pytest -p no:monarch.testing` leaves it out.
"""

from __future__ import annotations

import pytest

from monarch._supervision import hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from monarch._failure import MeshFailure
    from monarch.testing.cluster import Cluster, Clusters
    from monarch.testing.leaks import Snapshot

__all__ = ["Cluster", "Clusters", "Snapshot", "cluster", "no_leaks"]

_GONE_S = 10.0
_unhandled: list[MeshFailure] = []


def pytest_configure() -> None:
    """A failure that nobody handles fails the test that runs, instead of ending the test run."""
    hook.replace_default(_unhandled.append)


def pytest_unconfigure() -> None:
    """The program is itself again."""
    hook.replace_default(None)


@pytest.fixture(autouse=True)
def _no_unhandled_failure() -> Iterator[None]:
    _unhandled.clear()
    yield
    if _unhandled:
        reports = "\n".join(failure.report() for failure in _unhandled)
        pytest.fail(f"nobody handled:\n{reports}", pytrace=False)


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Clusters]:
    """`cluster(4)` starts four processes on this host and gives a `Cluster`.

    It can be called several times. Until the end of the test, failures that nobody handles are
    collected in its `failures` instead of ending the test run. Then all processes are stopped.
    """
    from monarch.testing.cluster import Clusters  # noqa: PLC0415 - only tests that ask for it

    if "no_leaks" in request.fixturenames:
        request.getfixturevalue("no_leaks")  # it looks when all is stopped, so it begins before
    made = Clusters()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def no_leaks(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Snapshot]:
    """Fails the test if it leaves something behind.

    Descriptors, threads, processes (running or not reaped), shared memory and temporary files of
    ours are compared with what there was before; what is on its way out gets ten seconds. The
    runtime itself is started before the first look, since it stays for the next test. The test has
    a folder for temporary files of its own.
    """
    import tempfile  # noqa: PLC0415 - as above

    from monarch.testing.cluster import warm_up  # noqa: PLC0415 - as above
    from monarch.testing.leaks import Snapshot, leaks  # noqa: PLC0415 - as above

    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("temporary")))
    monkeypatch.setattr(tempfile, "tempdir", None)
    warm_up()
    before = Snapshot()
    yield before
    left = leaks(before, _GONE_S)
    if left:
        pytest.fail("the test leaves behind:\n" + "\n".join(left), pytrace=False)


def __getattr__(name: str) -> object:
    if name in {"Cluster", "Clusters"}:
        from monarch.testing import cluster as module  # noqa: PLC0415 - needs the native module

        return getattr(module, name)
    if name == "Snapshot":
        from monarch.testing.leaks import Snapshot  # noqa: PLC0415 - as above

        return Snapshot
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
