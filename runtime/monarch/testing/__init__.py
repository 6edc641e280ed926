"""A pytest plugin for programs that use this package: fixtures `cluster` and `no_leaks`.

It is loaded with the package; `pytest -p no:monarch.testing` leaves it out.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from monarch.testing.cluster import Cluster, Clusters
    from monarch.testing.leaks import Snapshot

__all__ = ["Cluster", "Clusters", "Snapshot", "cluster", "no_leaks"]

_GONE_S = 10.0


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
def no_leaks() -> Iterator[Snapshot]:
    """Fails the test if it leaves something behind.

    Descriptors, threads, processes (running or not reaped), shared memory and temporary files of
    ours are compared with what there was before; what is on its way out gets ten seconds. The
    runtime itself is started before the first look, since it stays for the next test.
    """
    from monarch.testing.cluster import warm_up  # noqa: PLC0415 - as above
    from monarch.testing.leaks import Snapshot, leaks  # noqa: PLC0415 - as above

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
