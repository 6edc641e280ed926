#include "wire/cast_relay.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace monarch::wire {
namespace {

using base::Bytes;

std::string key_of(std::uint32_t status, Bytes payload) {
  std::string key(sizeof status + payload.size(), '\0');
  std::memcpy(key.data(), &status, sizeof status);
  if (!payload.empty()) std::memcpy(key.data() + sizeof status, payload.data(), payload.size());
  return key;
}

}  // namespace

base::Result<void> CastRelay::cast(std::uint64_t from, const Cast& cast, Bytes plan,
                                   const std::function<bool(std::uint64_t)>& linked,
                                   base::Instant now, Effects& effects) {
  auto read = read_plan(plan);
  if (!read) return std::move(read).error();
  if (cast.route != 0 && linked(cast.origin)) keep(cast, *read);  // so that its end is heard of
  if (flights_.contains({cast.origin, cast.number})) return {};  // nobody says it twice
  Flight flight{.parent = from, .since = now, .answers = cast.answers};
  for (const Receiver& to : read->receivers) hand_over(flight, to, linked, effects);
  for (const Plan::Below& below : read->below) {
    if (!pass_on(flight, below.relay, below.ranks, linked)) continue;
    effects.forward.push_back({.to = below.relay,
                               .kind = Kind::kCast,
                               .message = cast_message(cast, below.branch)});
  }
  settle(flights_.emplace(Key{cast.origin, cast.number}, std::move(flight)).first, now, effects);
  return {};
}

void CastRelay::recast(std::uint64_t from, const Recast& recast,
                       const std::function<bool(std::uint64_t)>& linked, base::Instant now,
                       Effects& effects) {
  const Cast& cast = recast.cast;
  if (flights_.contains({cast.origin, cast.number})) return;
  Flight flight{.parent = from, .since = now, .answers = cast.answers};
  if (const Route* const route = kept(cast)) {
    for (Receiver to : route->receivers) {
      to.previous = recast.previous;
      to.after += recast.more;
      const auto other =
          std::ranges::lower_bound(recast.differing, to.rank, {}, &Differing::rank);
      if (other != recast.differing.end() && other->rank == to.rank) {
        to.previous = other->previous;
        to.after = other->after;
      }
      hand_over(flight, to, linked, effects);
    }
    for (const Route::Below& below : route->below) {
      if (!pass_on(flight, below.relay, below.ranks, linked)) continue;
      Recast part{.cast = cast, .previous = recast.previous, .more = recast.more, .differing = {}};
      std::ranges::copy_if(recast.differing, std::back_inserter(part.differing),
                           [&](const Differing& one) { return below.ranks.has(one.rank); });
      effects.forward.push_back(
          {.to = below.relay, .kind = Kind::kRecast, .message = recast_message(part)});
    }
  } else {
    Ranks all;
    all.add(0, ~std::uint32_t{0});
    add(flight, k_missed, {}, all);
  }
  settle(flights_.emplace(Key{cast.origin, cast.number}, std::move(flight)).first, now, effects);
}

void CastRelay::keep(const Cast& cast, const Plan& plan) {
  Route route{.receivers = plan.receivers, .below = {}};
  for (const Plan::Below& below : plan.below) route.below.push_back({below.relay, below.ranks});
  std::map<std::uint64_t, Route>& all = routes_[cast.origin];
  all.insert_or_assign(cast.route, std::move(route));
  const std::uint64_t newest = all.rbegin()->first;
  std::erase_if(all, [&](const auto& one) { return newest - one.first >= limits_.routes; });
}

const CastRelay::Route* CastRelay::kept(const Cast& cast) const {
  const auto all = routes_.find(cast.origin);
  if (all == routes_.end()) return nullptr;
  const auto route = all->second.find(cast.route);
  return route == all->second.end() ? nullptr : &route->second;
}

void CastRelay::hand_over(Flight& flight, const Receiver& to,
                          const std::function<bool(std::uint64_t)>& linked, Effects& effects) {
  Ranks rank;
  rank.add(to.rank);
  if (!linked(to.proc)) return add(flight, k_missed, {}, rank);
  effects.deliver.push_back(to);
  if (!flight.answers) return;  // handing it over is all
  const auto known = std::ranges::find(flight.edges, to.proc, &Edge::peer);
  Edge& edge =
      known != flight.edges.end() ? *known : flight.edges.emplace_back(Edge{.peer = to.proc});
  edge.open.add(rank);
}

bool CastRelay::pass_on(Flight& flight, std::uint64_t relay, const Ranks& ranks,
                        const std::function<bool(std::uint64_t)>& linked) {
  if (ranks.empty()) return false;
  if (!linked(relay)) {
    add(flight, k_missed, {}, ranks);
    return false;
  }
  flight.edges.push_back({.peer = relay, .open = ranks});
  return true;
}

void CastRelay::answer(std::uint64_t from, const Answer& answer, Bytes payload, base::Instant now,
                       Effects& effects) {
  const auto at = flights_.find({answer.origin, answer.number});
  if (at == flights_.end()) return;
  const auto edge = std::ranges::find(at->second.edges, from, &Edge::peer);
  if (edge == at->second.edges.end() || !edge->open.take(answer.rank)) return;
  Ranks rank;
  rank.add(answer.rank);
  add(at->second, answer.status, payload, rank);
  settle(at, now, effects);
}

void CastRelay::gathered(std::uint64_t from, const Gathered& gathered, base::Instant now,
                         Effects& effects) {
  const auto at = flights_.find({gathered.origin, gathered.number});
  if (at == flights_.end()) return;
  const auto edge = std::ranges::find(at->second.edges, from, &Edge::peer);
  if (edge == at->second.edges.end()) return;
  for (const Group& group : gathered.groups) {
    const Ranks owed = edge->open.take(group.ranks);
    if (!owed.empty()) add(at->second, group.status, group.payload, owed);
  }
  settle(at, now, effects);
}

void CastRelay::done(std::uint64_t from, const Done& done, base::Instant now, Effects& effects) {
  for (const std::uint64_t number : done.numbers) {
    const auto at = flights_.find({done.origin, number});
    if (at == flights_.end() || at->second.answers) continue;
    const auto edge = std::ranges::find(at->second.edges, from, &Edge::peer);
    if (edge == at->second.edges.end()) continue;
    edge->open = {};
    settle(at, now, effects);
  }
}

void CastRelay::lost(std::uint64_t peer, base::Instant now, Effects& effects) {
  routes_.erase(peer);
  std::erase_if(finished_, [&](const auto& one) {
    return one.first.first == peer || one.first.second == peer;
  });
  for (auto at = flights_.begin(); at != flights_.end();) {
    Flight& flight = at->second;
    if (flight.parent == peer || at->first.first == peer) {
      at = flights_.erase(at);  // the origin sends it again itself, or is gone
      continue;
    }
    const auto edge = std::ranges::find(flight.edges, peer, &Edge::peer);
    if (edge == flight.edges.end()) {
      ++at;
      continue;
    }
    // At once: nobody is to hear of its end before its answers.
    if (!edge->open.empty()) add(flight, k_missed, {}, std::exchange(edge->open, {}));
    report(at->first, flight, effects);
    at = settle(at, now, effects);
  }
}

std::optional<base::Instant> CastRelay::due() const {
  std::optional<base::Instant> first;
  if (!due_.empty()) first = due_.begin()->first;
  for (const auto& [key, finished] : finished_) {
    const base::Instant end = finished.since + limits_.done;
    first = first ? std::min(*first, end) : end;
  }
  return first;
}

void CastRelay::expire(base::Instant now, Effects& effects) {
  while (!due_.empty() && due_.begin()->first <= now) {
    const Key key = due_.extract(due_.begin()).value().second;
    if (const auto at = flights_.find(key); at != flights_.end()) {
      at->second.armed = false;
      report(key, at->second, effects);
    }
  }
  for (auto at = finished_.begin(); at != finished_.end();) {
    if (now < at->second.since + limits_.done) {
      ++at;
      continue;
    }
    effects.reports.push_back({.to = at->first.first,
                               .kind = Kind::kDone,
                               .message = done_message({at->first.second, at->second.numbers})});
    at = finished_.erase(at);
  }
}

void CastRelay::add(Flight& flight, std::uint32_t status, Bytes payload, const Ranks& ranks) {
  const auto [group, fresh] = flight.groups.try_emplace(key_of(status, payload));
  if (fresh) flight.bytes += payload.size();
  group->second.add(ranks);
}

// What there is to be said after something of it has changed; the flight that follows.
CastRelay::Flights::iterator CastRelay::settle(Flights::iterator at, base::Instant now,
                                               Effects& effects) {
  Flight& flight = at->second;
  const bool over =
      std::ranges::all_of(flight.edges, [](const Edge& edge) { return edge.open.empty(); });
  if (over || flight.bytes >= limits_.bytes) {
    report(at->first, flight, effects);
  } else if (!flight.groups.empty() && !std::exchange(flight.armed, true)) {
    due_.emplace(now + std::clamp(now - flight.since, limits_.least, limits_.most), at->first);
  }
  if (!over) return ++at;
  if (!flight.answers) finish(at->first, flight.parent, now, effects);
  return flights_.erase(at);
}

void CastRelay::report(const Key& key, Flight& flight, Effects& effects) {
  if (flight.groups.empty()) return;
  Gathered gathered{.origin = key.first, .number = key.second, .groups = {}};
  std::size_t bytes = 0;
  const auto send = [&] {
    effects.reports.push_back({.to = flight.parent,
                               .kind = Kind::kGathered,
                               .message = gathered_message(gathered)});
    gathered.groups.clear();
    bytes = 0;
  };
  for (const auto& [text, ranks] : flight.groups) {
    std::uint32_t status = 0;
    std::memcpy(&status, text.data(), sizeof status);
    const Bytes whole = std::as_bytes(std::span(text));
    const Bytes payload = whole.subspan(sizeof status);
    gathered.groups.push_back({.status = status, .payload = payload, .ranks = ranks});
    bytes += payload.size() + k_group_head + 8 * ranks.runs().size();
    if (bytes >= limits_.bytes) send();
  }
  if (!gathered.groups.empty()) send();
  flight.groups.clear();
  flight.bytes = 0;
}

// A cast without answers has been handed to everybody: said of several at once.
void CastRelay::finish(const Key& key, std::uint64_t parent, base::Instant now, Effects& effects) {
  Finished& finished = finished_[{parent, key.first}];
  if (finished.numbers.empty()) finished.since = now;
  finished.numbers.push_back(key.second);
  if (finished.numbers.size() < limits_.numbers) return;
  effects.reports.push_back({.to = parent,
                             .kind = Kind::kDone,
                             .message = done_message({key.first, finished.numbers})});
  finished_.erase({parent, key.first});
}

}  // namespace monarch::wire
