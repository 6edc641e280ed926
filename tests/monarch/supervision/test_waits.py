"""Deadlock detection against a model: any graph of waits, probes delivered in any order."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from monarch._supervision.waits import Circle, Probe, Waits, told


class Net:
    """Some processes, the probes between them, and the circles they have found."""

    def __init__(self, pick=lambda _: 0):
        self.procs: dict[int, Waits] = {}
        self.flying: list[Probe] = []
        self.circles: list[Circle] = []
        self.pick = pick

    def waits(self, proc):
        return self.procs.setdefault(proc, Waits(proc))

    def begin(self, who, *missing):
        proc, actor = who
        running, called = f"A{proc}{actor}.run", f"A{missing[0][0]}{missing[0][1]}.step"
        return self.waits(proc).begin(actor, running, called, lambda: missing)

    def ask(self, who, wait):
        self.flying += self.waits(who[0]).ask(wait)

    def step(self):
        probe = self.flying.pop(self.pick(len(self.flying)))
        for effect in self.waits(probe.proc).probed(probe):
            (self.flying if isinstance(effect, Probe) else self.circles).append(effect)

    def settle(self):
        while self.flying:
            self.step()


def test_two_that_wait_for_each_other_are_found_and_named():
    net = Net()
    a, b = (1, 1), (2, 1)
    first, second = net.begin(a, b), net.begin(b, a)
    net.ask(a, first)
    net.settle()
    assert net.circles == []  # the other one has the higher id
    net.ask(b, second)
    net.settle()
    (circle,) = net.circles
    assert circle.wait is second
    text, names = told(circle.hops)
    assert names == ("A21.run", "A11.run")
    assert text.startswith("deadlock: A21.run → A11.run → A21.run. A21.run waits for A11.step; ")


def test_an_actor_that_waits_for_itself_is_found():
    net = Net()
    wait = net.begin((1, 1), (1, 1))
    net.ask((1, 1), wait)
    net.settle()
    assert [circle.wait for circle in net.circles] == [wait]


def test_a_wait_that_ended_between_two_probes_is_no_deadlock():
    net = Net()
    a, b = (1, 1), (2, 1)
    first, second = net.begin(a, b), net.begin(b, a)
    net.ask(b, second)
    net.step()  # at a
    net.waits(1).end(first)  # the answer had come
    net.settle()
    assert net.circles == []


def test_a_probe_that_comes_home_to_a_later_wait_is_dropped():
    net = Net()
    a, b = (1, 1), (2, 1)
    net.begin(a, b)
    second = net.begin(b, a)
    net.ask(b, second)
    net.step()  # at a
    net.waits(2).end(second)
    net.begin(b, a)
    net.settle()
    assert net.circles == []


def test_a_wait_that_is_over_asks_no_more():
    net = Net()
    wait = net.begin((1, 1), (2, 1))
    net.waits(1).end(wait)
    assert net.waits(1).ask(wait) == []
    assert len(net.waits(1)) == 0


def test_many_ways_to_one_actor_do_not_multiply_the_probes():
    net = Net()
    layers = [[(layer, actor) for actor in range(1, 7)] for layer in range(6)]
    waits = {}
    for layer, below in itertools.pairwise(layers):
        for who in layer:
            waits[who] = net.begin(who, *below)
    net.ask((0, 1), waits[0, 1])
    steps = 0
    while net.flying:
        net.step()
        steps += 1
    assert steps <= 6 * 6 * 6


NODES = [(proc, actor) for proc in (1, 2, 3) for actor in (1, 2)]


@given(
    st.dictionaries(
        st.sampled_from(NODES), st.lists(st.sampled_from(NODES), min_size=1, unique=True)
    ),
    st.randoms(use_true_random=False),
)
def test_a_circle_is_found_exactly_where_there_is_one(edges, order):
    net = Net(order.randrange)
    waits = {who: net.begin(who, *missing) for who, missing in edges.items()}
    for _ in range(4):
        for who in order.sample(sorted(waits), len(waits)):
            net.ask(who, waits[who])
        net.settle()
    assert bool(net.circles) == has_circle(edges)
    for circle in net.circles:
        names = [(hop.proc, hop.actor) for hop in circle.hops]
        for here, there in zip(names, names[1:] + names[:1], strict=True):
            assert there in edges[here]


def has_circle(edges):
    def reaches(at, goal, seen):
        return any(
            n == goal or (n not in seen and reaches(n, goal, seen | {n})) for n in edges.get(at, ())
        )

    return any(reaches(who, who, frozenset()) for who in edges)
