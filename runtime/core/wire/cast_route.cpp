#include "wire/cast_route.hpp"

#include <tuple>
#include <unordered_map>

namespace monarch::wire {
namespace {

// One that differs takes more bytes than one of a plan.
constexpr std::size_t kFewer = 4;

}  // namespace

CastRoute::CastRoute(const CastOrigin& origin, std::span<const Hop> hops,
                     std::span<const std::uint64_t> relays, std::vector<Member> members)
    : epoch_(origin.epoch()) {
  std::unordered_map<std::size_t, std::size_t> stops;  // by place
  std::vector<std::size_t> tops;  // the stop below the root, by stop
  for (const Hop& hop : hops) {
    const std::size_t from = hop.from == k_root ? k_root : stops.at(hop.from);
    stops.emplace(hop.place, stops_.size());
    tops.push_back(from == k_root ? stops_.size() : tops[from]);
    stops_.push_back({.relay = relays[hop.place], .from = from, .members = {}});
  }
  std::ranges::sort(members, {}, [](const Member& member) { return member.to.rank; });
  receivers_.reserve(members.size());
  for (const Member& member : members) {
    const std::size_t stop = stops.at(member.place);
    stops_[stop].members.push_back(receivers_.size());
    receivers_.push_back({.to = member.to, .hop = stops_[tops[stop]].relay});
  }
}

std::vector<CastRoute::Message> CastRoute::begin(CastOrigin& origin, std::uint64_t self,
                                                 std::vector<Entrusted> receivers, bool answers) {
  Recast recast{.cast = {.origin = self,
                         .number = origin.next(),
                         .stable = origin.stable(),
                         .answers = answers,
                         .route = number_}};
  std::vector<Message> messages;
  if (origin.keeps(number_) && differs_little(recast, receivers)) {
    messages = again(recast, receivers);
  } else {
    recast.cast.route = number_ = origin.new_route();
    messages = plans(recast.cast, receivers);
  }
  origin.begin(std::move(receivers), answers);
  return messages;
}

// Puts in what most of them have in common, and the others; false where there are many others.
bool CastRoute::differs_little(Recast& recast, std::span<const Entrusted> receivers) const {
  const auto before = [&](std::size_t i) {
    const Receiver& to = receivers[i].to;
    return std::pair(to.previous, to.after - receivers_[i].to.after);
  };
  std::pair<std::uint64_t, std::uint64_t> most;
  std::size_t votes = 0;  // of more than half, if they are so many: each other one takes one away
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    if (votes == 0) most = before(i);
    votes = before(i) == most ? votes + 1 : votes - 1;
  }
  std::tie(recast.previous, recast.more) = most;
  for (std::size_t i = 0; i < receivers.size(); ++i) {
    const Receiver& to = receivers[i].to;
    if (before(i) == most) continue;
    recast.differing.push_back({.rank = to.rank, .previous = to.previous, .after = to.after});
    if (recast.differing.size() > receivers.size() / kFewer) return false;
  }
  return true;
}

std::vector<CastRoute::Message> CastRoute::plans(const Cast& cast,
                                                 std::span<const Entrusted> receivers) {
  std::vector<Branch> branches(stops_.size());
  std::vector<Message> messages;
  for (std::size_t stop = stops_.size(); stop-- > 0;) {
    Branch& branch = branches[stop];
    branch.relay = stops_[stop].relay;
    for (const std::size_t member : stops_[stop].members) {
      branch.receivers.push_back(receivers[member].to);
    }
    if (stops_[stop].from != k_root) {
      branches[stops_[stop].from].branches.push_back(std::move(branch));
      continue;
    }
    messages.push_back({.relay = branch.relay,
                        .kind = Kind::kCast,
                        .head = cast_message(cast, write_branch(branch))});
  }
  receivers_.assign(receivers.begin(), receivers.end());
  return messages;
}

std::vector<CastRoute::Message> CastRoute::again(const Recast& recast,
                                                 std::span<const Entrusted> receivers) const {
  std::vector<Message> messages;
  for (const Stop& stop : stops_) {
    if (stop.from != k_root) continue;
    Recast part{.cast = recast.cast,
                .previous = recast.previous,
                .more = recast.more,
                .differing = {}};
    auto one = receivers.begin();
    for (const Differing& other : recast.differing) {
      one = std::ranges::find(one, receivers.end(), other.rank,
                              [](const Entrusted& each) { return each.to.rank; });
      if (one->hop == stop.relay) part.differing.push_back(other);
    }
    messages.push_back(
        {.relay = stop.relay, .kind = Kind::kRecast, .head = recast_message(part)});
  }
  return messages;
}

}  // namespace monarch::wire
