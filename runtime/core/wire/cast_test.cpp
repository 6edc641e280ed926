#include "wire/cast.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "wire/cast_world.hpp"

namespace monarch::wire {
namespace {

base::Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

const auto k_all = [](std::uint64_t) { return true; };

Branch two_hosts() {
  Branch below{.relay = 11, .receivers = {{.proc = 21, .actor = 7, .rank = 2}}, .branches = {}};
  return {.relay = 10,
          .receivers = {{.proc = 20, .actor = 7, .rank = 0, .previous = 3, .after = 9},
                        {.proc = 22, .actor = 7, .rank = 1, .previous = 3, .after = 9}},
          .branches = {below}};
}

TEST_CASE("a plan says who gets a cast, nine bytes for each that is like the one before") {
  const std::vector<std::byte> branch = write_branch(two_hosts());
  const auto plan = read_plan(branch);
  REQUIRE(plan.ok());
  CHECK(plan->relay == 10);
  CHECK(plan->receivers == two_hosts().receivers);
  REQUIRE(plan->below.size() == 1);
  CHECK(plan->below[0].relay == 11);
  CHECK(plan->below[0].ranks.runs() == std::vector<Ranks::Run>{{2, 1}});

  Branch many{.relay = 1, .receivers = {}, .branches = {}};
  for (std::uint32_t i = 0; i < 100; ++i) many.receivers.push_back({.proc = 5 + i, .rank = i});
  CHECK(write_branch(many).size() == 16 + 9 * 100);
}

TEST_CASE("what is cut short is refused") {
  std::vector<std::byte> whole = cast_message({1, 5, 4, true}, write_branch(two_hosts()));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    base::Bytes message = base::Bytes(whole).first(size);
    base::Bytes plan;
    CHECK(!read_cast(message, plan).ok());
  }
  base::Bytes message(whole);
  base::Bytes plan;
  REQUIRE(read_cast(message, plan).ok());
  CHECK(message.empty());
  for (std::size_t size = 0; size < plan.size(); ++size) CHECK(!read_plan(plan.first(size)).ok());
}

TEST_CASE("a cast by a plan that is kept says what differs, and is refused when it is cut short") {
  const Recast recast{.cast = {.origin = 1, .number = 5, .stable = 4, .answers = true, .route = 3},
                      .previous = 4,
                      .more = 2,
                      .differing = {{.rank = 0, .previous = 3, .after = 7}, {2, 4, 9}}};
  const std::vector<std::byte> whole = recast_message(recast);
  CHECK(whole.size() == k_recast_head + 2 * 20);
  base::Bytes message(whole);
  const auto read = read_recast(message);
  REQUIRE(read.ok());
  CHECK(message.empty());
  CHECK(read->cast.route == 3);
  CHECK(read->previous == 4);
  CHECK(read->more == 2);
  CHECK(read->differing == recast.differing);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    base::Bytes cut = base::Bytes(whole).first(size);
    CHECK(!read_recast(cut).ok());
  }
  const std::vector<Recast> wrong = {
      {.cast = {1, 5, 5, true, 3}},
      {.cast = {1, 5, 4, true, 0}},
      {.cast = {1, 5, 4, true, 3}, .previous = 5},
      {.cast = {1, 5, 4, true, 3}, .differing = {{2, 4, 0}, {2, 4, 0}}},
      {.cast = {1, 5, 4, true, 3}, .differing = {{2, 5, 0}}},
  };
  for (const Recast& one : wrong) {
    const std::vector<std::byte> bytes = recast_message(one);
    base::Bytes given(bytes);
    CHECK(!read_recast(given).ok());
  }
}

TEST_CASE("a plan that goes deeper than any tree is refused") {
  Branch branch{.relay = 1, .receivers = {{.proc = 2}}, .branches = {}};
  for (std::size_t i = 0; i < k_most_depth; ++i) branch = {3, {}, {branch}};
  CHECK(read_plan(write_branch(branch)).ok());
  branch = {3, {}, {branch}};
  CHECK(!read_plan(write_branch(branch)).ok());
}

TEST_CASE("up to the fan-out all relays are below the root, then each has as many below it") {
  const auto usable = [](std::size_t, std::size_t) { return true; };
  const std::vector<std::size_t> four{3, 5, 6, 9};
  for (const Hop& hop : shape(four, 4, usable)) CHECK(hop.from == k_root);
  std::vector<std::size_t> all(100);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const auto hops = shape(all, 4, usable);
  REQUIRE(hops.size() == all.size());
  std::map<std::size_t, int> below;
  for (const Hop& hop : hops) {
    CHECK(hop.from == above(hop.place, 4));
    ++below[hop.from];
  }
  for (const auto& [place, count] : below) CHECK(count <= 4);
}

TEST_CASE("a relay that is gone, or that no link leads to, is passed by") {
  std::vector<std::size_t> all{0, 1, 2, 3, 4, 5, 6};
  std::erase(all, 0);
  const auto without = shape(all, 2, [](std::size_t from, std::size_t place) {
    return from != 0 && place != 0 && !(from == 1 && place == 4);
  });
  std::map<std::size_t, std::size_t> from;
  for (const Hop& hop : without) from[hop.place] = hop.from;
  CHECK(!from.contains(0));
  CHECK(from.at(2) == k_root);  // was below 0
  CHECK(from.at(4) == k_root);  // 1 has no link to it
  CHECK(from.at(5) == 1);
}

TEST_CASE("equal answers go up as one, when all are there") {
  CastRelay relay;
  CastRelay::Effects effects;
  const base::Instant now{};
  REQUIRE(relay.cast(1, {1, 5, 0, true}, write_branch(two_hosts()), k_all, now, effects).ok());
  CHECK(effects.deliver.size() == 2);
  REQUIRE(effects.forward.size() == 1);
  relay.answer(20, {1, 5, 0, 0}, bytes_of("same"), now, effects);
  relay.answer(22, {1, 5, 1, 0}, bytes_of("same"), now, effects);
  relay.answer(22, {1, 5, 1, 0}, bytes_of("twice"), now, effects);  // owes none any more
  CHECK(effects.reports.empty());
  Ranks third;
  third.add(2);
  relay.gathered(11, {1, 5, {{0, bytes_of("same"), third}}}, now, effects);
  REQUIRE(effects.reports.size() == 1);
  CHECK(effects.reports[0].to == 1);
  const auto gathered = read_gathered(effects.reports[0].message);
  REQUIRE(gathered.ok());
  REQUIRE(gathered->groups.size() == 1);
  CHECK(gathered->groups[0].ranks.runs() == std::vector<Ranks::Run>{{0, 3}});
  CHECK(relay.flights() == 0);
}

TEST_CASE("answers that are there do not wait long for one that is slow") {
  CastRelay relay;
  CastRelay::Effects effects;
  const base::Instant now{};
  REQUIRE(relay.cast(1, {1, 5, 0, true}, write_branch(two_hosts()), k_all, now, effects).ok());
  CHECK(!relay.due());
  relay.answer(20, {1, 5, 0, 1}, bytes_of("error"), now, effects);
  REQUIRE(relay.due());
  relay.expire(*relay.due(), effects);
  REQUIRE(effects.reports.size() == 1);
  const auto gathered = read_gathered(effects.reports[0].message);
  REQUIRE(gathered.ok());
  CHECK(gathered->groups[0].status == 1);
  CHECK(gathered->groups[0].ranks.runs() == std::vector<Ranks::Run>{{0, 1}});
  CHECK(!relay.due());
}

TEST_CASE("answers wait for others as long as the first of them took, within limits") {
  using std::chrono::microseconds;
  const RelayLimits limits{.least = microseconds(300), .most = microseconds(2000)};
  for (const auto& [took, waits] : {std::pair(10, 300), std::pair(800, 800), std::pair(9000, 2000)}) {
    CastRelay relay(limits);
    CastRelay::Effects effects;
    const base::Instant now{};
    REQUIRE(relay.cast(1, {1, 5, 0, true}, write_branch(two_hosts()), k_all, now, effects).ok());
    const base::Instant came = now + microseconds(took);
    relay.answer(20, {1, 5, 0, 0}, {}, came, effects);
    CHECK(relay.due() == came + microseconds(waits));
    relay.answer(22, {1, 5, 1, 0}, {}, came + microseconds(1), effects);
    CHECK(relay.due() == came + microseconds(waits));
  }
}

TEST_CASE("whom a relay does not reach, or loses, it names") {
  CastRelay relay;
  CastRelay::Effects effects;
  const base::Instant now{};
  const auto linked = [](std::uint64_t peer) { return peer != 11; };
  REQUIRE(relay.cast(1, {1, 5, 0, true}, write_branch(two_hosts()), linked, now, effects).ok());
  CHECK(effects.forward.empty());
  relay.answer(20, {1, 5, 0, 0}, {}, now, effects);
  relay.lost(22, now, effects);
  REQUIRE(effects.reports.size() == 1);
  const auto gathered = read_gathered(effects.reports[0].message);
  REQUIRE(gathered.ok());
  Ranks missed;
  for (const Group& group : gathered->groups) {
    if (group.status == k_missed) missed.add(group.ranks);
  }
  CHECK(missed.runs() == std::vector<Ranks::Run>{{1, 2}});
}

// A hundred receivers on ten hosts, of which the first two are above the others.
struct Hundred {
  explicit Hundred(std::size_t routes = k_routes) : origin(routes), route(make()) {}

  CastRoute make() {
    std::vector<CastRoute::Member> members;
    std::vector<std::size_t> places(10);
    for (std::size_t i = 0; i < 10; ++i) places[i] = i;
    for (std::uint32_t i = 0; i < 100; ++i) {
      members.push_back({{.proc = 1000 + i, .actor = 7, .rank = i}, i / 10});
    }
    return {origin, shape(places, 2, [](std::size_t, std::size_t) { return true; }), relays,
            std::move(members)};
  }
  std::vector<CastRoute::Message> cast() {
    const std::uint64_t number = origin.next();
    auto receivers = route.receivers();
    for (auto& one : receivers) {
      std::tie(one.to.previous, one.to.after) = lanes[one.to.rank].cast(number);
    }
    return route.begin(origin, 1, std::move(receivers), true);
  }

  CastOrigin origin;
  std::vector<std::uint64_t> relays{10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  std::vector<SendLane> lanes = std::vector<SendLane>(100);
  CastRoute route;
};

TEST_CASE("a later cast to a group says no more than who differs, and a plan where many do") {
  Hundred hundred;
  for (const auto& message : hundred.cast()) CHECK(message.kind == Kind::kCast);
  for (SendLane& lane : hundred.lanes) lane.passed();
  hundred.lanes[3].passed();  // of the first host, which is below the first relay
  const auto again = hundred.cast();
  REQUIRE(again.size() == 2);
  for (const auto& message : again) CHECK(message.kind == Kind::kRecast);
  CHECK(again[0].head.size() == k_recast_head + 20);
  CHECK(again[1].head.size() == k_recast_head);
  base::Bytes bytes(again[0].head);
  const auto read = read_recast(bytes);
  REQUIRE(read.ok());
  CHECK(read->previous == 1);
  CHECK(read->more == 1);
  CHECK(read->differing == std::vector<Differing>{{.rank = 3, .previous = 1, .after = 2}});
  for (std::size_t i = 0; i < 30; ++i) hundred.lanes[i].passed();
  for (const auto& message : hundred.cast()) CHECK(message.kind == Kind::kCast);
  for (const auto& message : hundred.cast()) CHECK(message.kind == Kind::kRecast);
}

TEST_CASE("a route ends when the tree changes, and when there are many newer ones") {
  Hundred hundred(4);
  const auto all = [](std::uint64_t) { return true; };
  CHECK(hundred.route.holds(hundred.origin, all));
  CHECK(!hundred.route.holds(hundred.origin, [](std::uint64_t relay) { return relay != 15; }));
  (void)hundred.cast();
  for (int i = 0; i < 3; ++i) (void)hundred.origin.new_route();
  CHECK(hundred.cast()[0].kind == Kind::kRecast);
  (void)hundred.origin.new_route();
  CHECK(hundred.cast()[0].kind == Kind::kCast);
  CastOrigin::Effects effects;
  for (const int what : {0, 1, 2, 3}) {
    hundred.route = hundred.make();
    CHECK(hundred.route.holds(hundred.origin, all));
    if (what == 0) hundred.origin.changed();
    if (what == 1) hundred.origin.lost_hop(10, effects);
    if (what == 2) hundred.origin.lost_proc(1000, effects);
    if (what == 3) hundred.origin.gathered(10, 1, k_missed, {}, effects);
    CHECK(!hundred.route.holds(hundred.origin, all));
  }
}

TEST_CASE("a relay hands out by the plan that it has kept, and names all where it has not") {
  const base::Instant now{};
  const auto missed = [](const CastRelay::Effects& effects) {
    if (effects.reports.size() != 1) return false;
    const auto gathered = read_gathered(effects.reports[0].message);
    return gathered.ok() && gathered->groups.size() == 1 &&
           gathered->groups[0].status == k_missed && gathered->groups[0].ranks.has(0) &&
           gathered->groups[0].ranks.has(1'000'000);
  };
  const auto with = [](std::uint64_t number, std::uint64_t route) {
    return Recast{.cast = {1, number, 0, true, route},
                  .previous = number - 1,
                  .more = 2,
                  .differing = {{.rank = 1, .previous = 1, .after = 5}, {2, 1, 6}}};
  };
  CastRelay relay({.routes = 2});
  CastRelay::Effects first;
  REQUIRE(relay.cast(1, {1, 5, 0, true, 3}, write_branch(two_hosts()), k_all, now, first).ok());
  CastRelay::Effects again;
  relay.recast(1, with(6, 3), k_all, now, again);
  CHECK(again.deliver ==
        std::vector<Receiver>{{.proc = 20, .actor = 7, .rank = 0, .previous = 5, .after = 11},
                              {.proc = 22, .actor = 7, .rank = 1, .previous = 1, .after = 5}});
  REQUIRE(again.forward.size() == 1);
  CHECK(again.forward[0].to == 11);
  CHECK(again.forward[0].kind == Kind::kRecast);
  base::Bytes part(again.forward[0].message);
  CHECK(read_recast(part)->differing == std::vector<Differing>{{2, 1, 6}});

  CastRelay::Effects unknown;
  relay.recast(1, with(7, 4), k_all, now, unknown);
  CHECK(unknown.deliver.empty());
  CHECK(missed(unknown));
  CastRelay::Effects newer;
  for (const std::uint64_t route : {4, 5}) {
    REQUIRE(relay.cast(1, {1, 4 + route, 0, true, route}, write_branch(two_hosts()), k_all, now,
                       newer).ok());
  }
  CastRelay::Effects old;
  relay.recast(1, with(10, 3), k_all, now, old);
  CHECK(missed(old));
  CastRelay::Effects lost;
  relay.lost(1, now, lost);
  CastRelay::Effects gone;
  relay.recast(1, with(11, 5), k_all, now, gone);
  CHECK(missed(gone));
}

TEST_CASE("casts without answers are settled by one word for many") {
  CastRelay relay;
  CastRelay::Effects effects;
  base::Instant now{};
  Branch leaf = two_hosts();
  leaf.branches.clear();
  for (std::uint64_t number = 1; number <= 3; ++number) {
    REQUIRE(relay.cast(1, {1, number, 0, false}, write_branch(leaf), k_all, now, effects).ok());
  }
  CHECK(effects.deliver.size() == 6);
  CHECK(effects.reports.empty());
  relay.expire(*relay.due(), effects);
  REQUIRE(effects.reports.size() == 1);
  CHECK(read_done(effects.reports[0].message)->numbers == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(relay.flights() == 0);
}

TEST_CASE("what was handed over is settled, but only an answer says that it is there") {
  CastOrigin origin;
  CastOrigin::Effects effects;
  const std::vector<CastOrigin::Entrusted> receivers = {{{.proc = 20, .rank = 0}, 10},
                                                        {{.proc = 22, .rank = 1}, 10}};
  origin.begin(receivers, false);
  origin.done(10, 1, effects);
  CHECK(effects.there.empty());
  CHECK(effects.over == std::vector<std::uint64_t>{1});
  CHECK(origin.open() == 0);
  origin.begin(receivers, true);
  Ranks answered;
  answered.add(1);
  origin.gathered(11, 2, 0, answered, effects);  // of another hop's
  CHECK(effects.there.empty());
  origin.gathered(10, 2, 0, answered, effects);
  REQUIRE(effects.there.size() == 1);
  CHECK(effects.there[0].to.proc == 22);
}

TEST_CASE("in any world each process takes each message once, in order, and every call is answered") {
  std::size_t again = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto choose = [&](std::uint32_t below) {
      return static_cast<std::uint32_t>(random() % below);
    };
    world::World world(1 + seed % 9, 1 + seed % 4, 2, choose);
    for (int i = 0; i < 600; ++i) world.step();
    world.finish();
    again += world.again();
  }
  CHECK(again > 1000);
}

}  // namespace
}  // namespace monarch::wire
