"""Placements: where ranks are, and how handles learn that one was replaced."""

from __future__ import annotations

import gc

from monarch._mesh import placements
from monarch._mesh.placement import Placement, ProcRef
from monarch._shape import Extent


class Route:
    """Stands where a route stands: something that can be weakly held and made stale."""

    stale = False


def made(count: int = 4, mesh: int = 7, owner: int = 1) -> Placement:
    refs = {rank: ProcRef(100 + rank, rank) for rank in range(count)}
    return Placement(mesh, "procs", Extent(["n"], [count]), (owner, 0), refs)


def test_a_replaced_rank_makes_every_route_stale_once():
    procs = made()
    routes = [Route(), Route()]
    for route in routes:
        procs.watch(route)
    procs.replace(2, ProcRef(202, 2, incarnation=1))
    assert [route.stale for route in routes] == [True, True]
    assert (procs.refs[2].id, procs.version) == (202, 1)
    fresh = Route()
    procs.watch(fresh)
    assert not fresh.stale


def test_routes_that_nobody_holds_are_forgotten():
    procs = made()
    kept = Route()
    procs.watch(kept)
    for _ in range(10_000):
        procs.watch(Route())
    gc.collect()
    assert len(procs._routes) < 200
    procs.spoil()
    assert kept.stale


def test_older_news_change_nothing():
    procs = made()
    procs.replace(0, ProcRef(200, 0, incarnation=1))
    procs.replace(0, ProcRef(300, 0, incarnation=2))
    assert procs.update({0: ProcRef(200, 0, incarnation=1)}) == []
    assert procs.refs[0].id == 300
    assert procs.update({0: ProcRef(400, 0, incarnation=3), 1: procs.refs[1]}) == [0]
    assert procs.refs[0].id == 400


def test_a_replaced_rank_is_lost_no_more():
    procs = made()
    procs.lost.update({1, 2})
    procs.replace(1, ProcRef(201, 1))
    assert procs.lost == {2}


def test_handles_of_one_mesh_share_a_placement():
    procs = made(mesh=11)
    told = procs.told(procs.whole)
    first = placements.placement(*told)
    assert placements.placement(*told) is first
    procs.replace(3, ProcRef(203, 3, incarnation=1))
    newer = placements.placement(*procs.told(procs.whole))
    assert newer is first
    assert first.refs[3].id == 203
    placements.placement(*told)
    assert first.refs[3].id == 203


def test_a_handle_of_a_part_brings_only_its_procs():
    procs = made(mesh=13)
    part = procs.whole.select("n", slice(1, 3))
    there = placements.placement(*procs.told(part))
    assert sorted(there.refs) == [1, 2]
    placements.placement(*procs.told(procs.whole))
    assert sorted(there.refs) == [0, 1, 2, 3]
    assert placements.starter_of(101) == 1


def test_the_mesh_of_a_proc_is_found_until_it_stops():
    procs = made(mesh=17)
    placements.own(procs)
    assert placements.place_of(102) == (procs, 2)
    procs.replace(2, ProcRef(999, 2))
    placements.note_place(procs, 2)
    assert placements.place_of(999) == (procs, 2)
    procs.stop("done")
    placements.disown(procs)
    assert placements.place_of(999) is None
    assert procs.stopped == "done"
