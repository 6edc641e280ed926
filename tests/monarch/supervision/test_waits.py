"""Deadlock detection against a model: any graph of waits, probes delivered in any order."""

from __future__ import annotations

import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monarch._supervision.waits import Call, Circle, Probe, Wait, Waits, told


class Net:
    """Some processes, who waits for whom in them, the probes between and the circles found."""

    def __init__(self, pick=lambda _: 0):
        self.procs: dict[int, Waits] = {}
        self.edges: dict[tuple[int, int], tuple[int, list[tuple[int, int]]]] = {}
        self.flying: list[Probe] = []
        self.circles: list[Circle] = []
        self.pick = pick
        self.inboxes = itertools.count(1)

    def begin(self, who, *missing):
        self.edges[who] = (next(self.inboxes), list(missing))

    def end(self, who):
        del self.edges[who]

    def look(self, proc):
        def look(actor, _by_proc, _by_inbox):
            if (proc, actor) not in self.edges:
                return None
            inbox, missing = self.edges[proc, actor]
            # Those it waits for are called one by one, or the last two of them together.
            groups = [[one] for one in missing[:-2]] + [missing[-2:]]
            calls = [Call(100 * inbox + place, group) for place, group in enumerate(groups)]
            return Wait(f"A{proc}{actor}.run", f"A{proc}{actor}.step", calls)

        return look

    def waits(self, proc):
        return self.procs.setdefault(proc, Waits(proc, self.look(proc)))

    def ask(self, who):
        self.flying += self.waits(who[0]).ask(who[1])

    def step(self):
        probe = self.flying.pop(self.pick(len(self.flying)))
        for effect in self.waits(probe.proc).probed(probe):
            (self.flying if isinstance(effect, Probe) else self.circles).append(effect)

    def settle(self):
        while self.flying:
            self.step()


A, B = (1, 1), (2, 1)


def test_two_that_wait_for_each_other_are_found_and_named():
    net = Net()
    net.begin(A, B)
    net.begin(B, A)
    net.ask(A)
    net.settle()
    assert net.circles == []  # the other one has the higher key
    net.ask(B)
    net.settle()
    (circle,) = net.circles
    assert circle.inbox == 100 * net.edges[B][0]
    text, names = told(circle.hops)
    assert names == ("A21.run", "A11.run")
    assert text.startswith("deadlock: A21.run → A11.run → A21.run. A21.run waits for A11.step; ")
    assert "A11.run waits for A21.step, which cannot start before A21.run has ended" in text


def test_an_actor_that_waits_for_itself_is_found():
    net = Net()
    net.begin(A, A)
    net.ask(A)
    net.settle()
    assert [circle.inbox for circle in net.circles] == [100 * net.edges[A][0]]


@pytest.mark.parametrize("order", list(itertools.permutations([(1, 1), (2, 1), (2, 2), (3, 1)])))
def test_a_circle_through_two_actors_of_one_process_is_found(order):
    net = Net()
    for who, missing in zip(order, (*order[1:], order[0]), strict=True):
        net.begin(who, missing)
    for who in order:
        net.ask(who)
    net.settle()
    assert len(net.circles) == 1


def test_circles_that_are_sought_at_the_same_time_do_not_keep_each_other_from_being_believed():
    net = Net()
    net.begin((5, 1), (1, 1), (2, 1), (3, 1))
    for proc in (1, 2, 3):
        net.begin((proc, 1), (5, 1))
    for _ in range(3):  # also by itself, before the first answer is there
        net.ask((5, 1))
    steps = 0
    while net.flying:
        net.step()
        steps += 1
    assert {circle.inbox for circle in net.circles} == {100, 101}
    assert steps < 100


def test_a_circle_through_one_of_several_calls_ends_that_call():
    net = Net()
    net.begin(A, (9, 1), (9, 2), B, (9, 3))  # processes where nobody waits
    net.begin(B, A)
    for who in (A, B):
        net.ask(who)
    net.settle()
    (circle,) = net.circles
    assert circle.inbox == 100 * net.edges[B][0]


def test_a_wait_that_ended_between_two_probes_is_no_deadlock():
    net = Net()
    net.begin(A, B)
    net.begin(B, A)
    net.ask(B)
    net.step()  # at A
    net.end(A)  # the answer had come
    net.settle()
    assert net.circles == []


def test_a_probe_that_comes_home_to_a_later_wait_is_dropped():
    net = Net()
    net.begin(A, B)
    net.begin(B, A)
    net.ask(B)
    net.step()  # at A
    net.begin(B, A)
    net.settle()
    assert net.circles == []


def test_a_wait_that_is_over_asks_no_more():
    net = Net()
    net.begin(A, B)
    net.end(A)
    net.ask(A)
    assert net.flying == []


def test_many_ways_to_one_actor_do_not_multiply_the_probes():
    net = Net()
    layers = [[(layer, actor) for actor in range(1, 7)] for layer in range(6)]
    for layer, below in itertools.pairwise(layers):
        for who in layer:
            net.begin(who, *below)
    net.ask((0, 1))
    steps = 0
    while net.flying:
        net.step()
        steps += 1
    assert steps <= 6 * 6 * 6


def test_probes_survive_pickling():
    net = Net()
    net.begin(A, B)
    net.ask(A)
    probe = pickle.loads(pickle.dumps(net.flying[0]))  # noqa: S301 - made here
    assert (probe.proc, probe.actor, probe.round) == (2, 1, 1)
    assert probe.hops[0].key() == net.flying[0].hops[0].key()


NODES = [(proc, actor) for proc in (1, 2, 3) for actor in (1, 2)]


@given(
    st.dictionaries(
        st.sampled_from(NODES), st.lists(st.sampled_from(NODES), min_size=1, unique=True)
    ),
    st.randoms(use_true_random=False),
)
def test_a_circle_is_found_exactly_where_there_is_one(edges, order):
    net = Net(order.randrange)
    for who, missing in edges.items():
        net.begin(who, *missing)
    for _ in range(4):
        for who in order.sample(sorted(edges), len(edges)):
            net.ask(who)
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
