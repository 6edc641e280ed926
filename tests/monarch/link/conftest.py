from __future__ import annotations

import uuid

import pytest

from monarch._link.gate import Gate
from tests.monarch.link.harness import SECRET, Links


@pytest.fixture
def process():
    """`process(7)`: the gate and links of proc 7, closed with the test."""
    made = []

    def make(own, secret=SECRET, **options):
        links = Links()
        give = secret if callable(secret) else lambda: secret
        gate = Gate(links, own, give, links.watch, links.unwatch, **options)
        made.append((gate, links))
        return gate, links

    yield make
    for gate, links in made:
        gate.close()
        links.close()


@pytest.fixture
def name():
    return f"ipc://@monarch-test-{uuid.uuid4().hex}"
