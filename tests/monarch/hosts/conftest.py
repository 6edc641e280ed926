from __future__ import annotations

import pytest

from ci.rigs.namespaces import Network, missing
from tests.monarch.hosts.rig import Hosts


@pytest.fixture
def hosts(tmp_path):
    """`hosts(n)`: n hosts that serve nothing yet, and one more for programs."""
    if missing():
        pytest.skip(missing())
    made = []

    def make(count):
        found = Hosts(Network(count + 1), tmp_path)
        made.append(found)
        return found

    yield make
    for one in made:
        one.close()
