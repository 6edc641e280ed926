"""Supervision as a whole, simulated: the real machines for deaths, restarts and the climb.

They run in several processes on a virtual clock, with everything that varies drawn from one seed.
"""

from __future__ import annotations

import heapq
import itertools
import random
from typing import NamedTuple

import pytest

from monarch._failure import MeshFailure
from monarch._restart import KINDS, STRATEGIES, Restart
from monarch._supervision.climb import ROOT, Ask, Climb, Tell
from monarch._supervision.deaths import Deaths
from monarch._supervision.policy import GiveUp, Group, Plan

SEEDS = 1000
FIRST = 1
CLIENT = 1
BUSY = 30.0  # seconds with deaths
REST = 60.0  # seconds for what follows from them


class Exit(NamedTuple):
    proc: int
    pid: int = 1
    code: int | None = 1
    signal: int | None = None


class Owner(NamedTuple):
    proc: int
    actor: int


class Mesh:
    def __init__(self, name, owner, policy, size):
        self.name = name
        self.owner = owner
        self.policy = policy
        self.group = None if policy is None else Group(policy, range(size))
        self.ranks = dict.fromkeys(range(size), 0)  # the process of each, 0 for none
        self.counted = []
        self.busy = False  # a restart is being carried out; deaths wait
        self.waiting = []
        self.over = False


class World:
    def __init__(self, seed):
        self.random = random.Random(seed)  # noqa: S311 - a seed is the point
        self.now = 0.0
        self.queue = []
        self.order = itertools.count()
        self.ids = itertools.count(1000)
        self.deaths = {}  # by process that owns meshes
        self.armed = {}  # by machine, when it is looked at again
        self.climbs = {}
        self.place = {}  # by process of a mesh, (mesh, rank)
        self.killed = {}  # that ended by themselves: process -> well
        self.told_to_end = set()
        self.found = []
        self.asked = []
        self.at_root = []
        self.handled = set()
        self.climbed = []  # deaths that were brought before an owner
        self.meshes = []
        self._build()

    def after(self, seconds, what):
        heapq.heappush(self.queue, (self.now + seconds, next(self.order), what))

    def run(self):
        while self.queue:
            self.now, _, what = heapq.heappop(self.queue)
            what()

    def _build(self):
        draw = self.random
        owners = [Owner(CLIENT, ROOT)]
        self._process(CLIENT, None)
        for number in range(draw.randint(0, 4)):
            parent = draw.choice(owners)
            if draw.random() < 0.5:  # in the process of its owner
                own = Owner(parent.proc, 10 + number)
            else:
                own = Owner(2 + number, 10 + number)
                self._process(own.proc, parent)
            self.climbs[own.proc].adopt(own.actor, f"Manager {number}", parent)
            owners.append(own)
        for number in range(draw.randint(1, 4)):
            policy = None
            if draw.random() < 0.7:
                policy = Restart(
                    draw.randint(0, 4),
                    draw.choice([0.5, 5.0, 60.0]),
                    draw.choice([0.0, 0.1, 1.0]),
                    strategy=draw.choice(STRATEGIES),
                    kind=draw.choice(KINDS),
                )
            mesh = Mesh(f"m{number}", draw.choice(owners), policy, draw.randint(1, 5))
            self.meshes.append(mesh)
            for rank in mesh.ranks:
                self._start(mesh, rank)
        for _ in range(draw.randint(1, 12)):
            self.after(draw.uniform(0.0, BUSY), self._strike)

    def _process(self, proc, root):
        self.deaths[proc] = Deaths()
        self.climbs[proc] = Climb(proc, root)

    def _start(self, mesh, rank):
        proc = next(self.ids)
        mesh.ranks[rank] = proc
        self.place[proc] = (mesh, rank)
        self.deaths[mesh.owner.proc].watch(proc)

    # Deaths, and what is heard of them.

    def _strike(self):
        alive = [p for mesh in self.meshes for p in mesh.ranks.values() if p and self._lives(p)]
        for proc in self.random.sample(alive, min(len(alive), self.random.choice([1, 1, 1, 2, 4]))):
            self.killed[proc] = self.random.random() < 0.2
            self._signs(proc)

    def _lives(self, proc):
        return proc not in self.killed and proc not in self.told_to_end

    def _signs(self, proc):
        """The link ends and the end is reported, in any order; one may never be heard of."""
        draw = self.random
        exit_ = Exit(proc, code=0 if self.killed.get(proc) else 1)
        signs = [lambda d: d.link_lost(proc, self.now), lambda d: d.exited(exit_, self.now)]
        if proc in self.killed and not self.killed[proc] and draw.random() < 0.2:
            del signs[draw.randrange(2)]
        else:
            signs += draw.sample(signs, draw.randint(0, 2))  # said again
        mesh, _ = self.place[proc]
        for sign in signs:
            self.after(draw.uniform(0.0, 0.4), lambda sign=sign: self._hear(mesh, sign))

    def _hear(self, mesh, sign):
        deaths = self.deaths[mesh.owner.proc]
        self._settle(deaths, sign(deaths))

    def _settle(self, deaths, found):
        self._all_found(found)
        due = deaths.deadline()
        if due is not None and self.now < BUSY + REST and not self.armed.get(deaths, 0) > self.now:
            self.armed[deaths] = max(due, self.now + 0.02)
            self.after(self.armed[deaths] - self.now, lambda: self._tick(deaths))

    def _tick(self, deaths):
        self.armed[deaths] = 0
        self._settle(deaths, deaths.tick(self.now))

    def _all_found(self, found):
        for dead in found:
            self.found.append(dead)
            if not dead.expected:
                mesh, _ = self.place[dead.proc]
                mesh.waiting.append(dead.proc)
                self._answer(mesh)

    # Restarts.

    def _answer(self, mesh):
        if mesh.busy or not mesh.waiting:
            return
        procs, mesh.waiting = mesh.waiting, []
        current = [p for p in procs if mesh.ranks[self.place[p][1]] == p]
        if mesh.group is None or mesh.over:
            for proc in current:
                mesh.ranks[self.place[proc][1]] = 0
                self._climb(mesh, proc)
            return
        deaths = [(self.place[p][1], self.killed[p]) for p in current]
        for rank, _ in deaths:
            mesh.ranks[rank] = 0
        answer = mesh.group.ended(deaths, self.now)
        if isinstance(answer, GiveUp):
            mesh.over = True
            self._stop(mesh, answer.stop)
            (proc,) = [p for p in current if self.place[p][1] == answer.child]
            self._climb(mesh, proc)
            return
        if isinstance(answer, Plan):
            mesh.busy = True
            self._stop(mesh, answer.stop)
            self.after(answer.delay, lambda: self._carry_out(mesh, answer))

    def _stop(self, mesh, ranks):
        for rank in ranks:
            proc = mesh.ranks[rank]
            mesh.ranks[rank] = 0
            if proc and self._lives(proc):
                self.deaths[mesh.owner.proc].expect(proc)
                self.told_to_end.add(proc)
                self._signs(proc)

    def _carry_out(self, mesh, plan):
        for rank in plan.start:
            self._start(mesh, rank)
        mesh.busy = False
        self._answer(mesh)

    # The climb.

    def _climb(self, mesh, proc):
        rank = self.place[proc][1]
        failure = MeshFailure("exit", mesh.name, (rank,), exit_code=1, death=f"{proc:x}")
        self.climbed.append(failure.death)
        self._do(mesh.owner.proc, self.climbs[mesh.owner.proc].arrived(mesh.owner.actor, failure))

    def _do(self, proc, effects):
        for effect in effects:
            if isinstance(effect, Tell):
                again = (effect.proc, effect.actor, effect.failure)
                for _ in range(self.random.choice([1, 1, 2])):  # told by two ways, perhaps
                    self.after(self.random.uniform(0.0, 0.2), lambda a=again: self._told(*a))
            elif isinstance(effect, Ask):
                self.after(self.random.uniform(0.0, 2.0), lambda e=effect: self._ask(proc, e.actor))

    def _told(self, proc, actor, failure):
        self._do(proc, self.climbs[proc].arrived(actor, failure))

    def _ask(self, proc, actor):
        climb = self.climbs[proc]
        for failure in climb.take(actor):
            self.asked.append((proc, actor, failure.death))
            if proc == CLIENT and actor == ROOT:
                self.at_root.append(failure.death)
            elif self.random.random() < 0.3 and actor != ROOT:
                self.handled.add(failure.death)
            else:
                self._do(proc, climb.passed(actor, failure))


def broken(world):
    """What of the promises does not hold at the end, as words."""
    unexpected = [dead.proc for dead in world.found if not dead.expected]
    if sorted(unexpected) != sorted(p for p in world.killed):
        yield "each end that nobody asked for is found once", unexpected
    ends = [dead.proc for dead in world.found]
    if len(ends) != len(set(ends)):
        yield "no end is found twice", ends
    if len(world.asked) != len(set(world.asked)):
        yield "an owner is asked once about a death", world.asked
    if len(world.climbed) != len(set(world.climbed)):
        yield "a death is brought before its owner once", world.climbed
    if sorted(world.at_root) != sorted(set(world.climbed) - world.handled):
        yield "what nobody handles is told to the client once", world.at_root
    for mesh in world.meshes:
        runs = [rank for rank, proc in mesh.ranks.items() if proc]
        if mesh.over and runs:
            yield "a mesh that was given up is over", mesh.name
        always = mesh.policy is not None and mesh.policy.kind == "permanent"
        if always and not mesh.over and len(runs) != len(mesh.ranks):
            yield "all ranks of a mesh run again", (mesh.name, mesh.ranks)


def simulate(seed):
    world = World(seed)
    world.run()
    return world


@pytest.mark.promise("S01")
@pytest.mark.promise("S02")
def test_a_thousand_courses_of_deaths_keep_every_promise():
    total = 0
    for seed in range(FIRST, FIRST + SEEDS):
        world = simulate(seed)
        total += len(world.killed)
        assert list(broken(world)) == [], f"simulate({seed})"
    assert total > SEEDS


def test_one_seed_is_one_course():
    one, other = simulate(11), simulate(11)
    assert one.asked == other.asked
    assert one.now == other.now


@pytest.mark.parametrize(
    ("of", "method", "bent", "says"),
    [
        (Climb, "passed", lambda *_: [], "told to the client"),
        (Deaths, "tick", lambda *_: [], "is found once"),
        (Deaths, "expect", lambda *_: None, "is found once"),
        (Group, "_with", lambda _self, _child: (), "run again"),
    ],
)
def test_a_machine_that_is_bent_is_found_out(monkeypatch, of, method, bent, says):
    monkeypatch.setattr(of, method, bent)
    found = (what for seed in range(1, 60) for what, _ in broken(simulate(seed)))
    assert any(says in what for what in found)
