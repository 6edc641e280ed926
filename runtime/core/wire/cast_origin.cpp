#include "wire/cast_origin.hpp"

#include <algorithm>
#include <utility>

namespace monarch::wire {

void CastOrigin::begin(std::vector<Entrusted> receivers, bool answers) {
  Flight flight;
  flight.answers = answers;
  flight.left = receivers.size();
  flight.settled.resize(receivers.size());
  flight.receivers = std::move(receivers);
  open_.emplace(next_++, std::move(flight));
}

template <typename Found>
void CastOrigin::settle_all(Open::iterator at, Found found, std::vector<Which>* into) {
  Flight& flight = at->second;
  for (std::size_t i = 0; i < flight.receivers.size(); ++i) {
    const Entrusted& one = flight.receivers[i];
    if (flight.settled[i] || !found(one)) continue;
    flight.settled[i] = true;
    --flight.left;
    if (into != nullptr) into->push_back({at->first, one.to});
  }
}

void CastOrigin::end_settled(Effects& effects) {
  for (auto at = open_.begin(); at != open_.end();) {
    if (at->second.left > 0) {
      ++at;
      continue;
    }
    effects.over.push_back(at->first);
    at = open_.erase(at);
  }
}

void CastOrigin::gathered(std::uint64_t hop, std::uint64_t number, std::uint32_t status,
                          const Ranks& ranks, Effects& effects) {
  if (status == k_missed) ++epoch_;
  const auto at = open_.find(number);
  if (at == open_.end()) return;
  Flight& flight = at->second;
  std::vector<Which>& into = status == k_missed ? effects.again : effects.there;
  const std::size_t before = effects.again.size();
  for (const Ranks::Run& run : ranks.runs()) {
    auto one = std::ranges::lower_bound(flight.receivers, run.first, {},
                                        [](const Entrusted& each) { return each.to.rank; });
    for (; one != flight.receivers.end() && one->to.rank - run.first < run.count; ++one) {
      const auto place = static_cast<std::size_t>(one - flight.receivers.begin());
      if (flight.settled[place] || one->hop != hop) continue;
      flight.settled[place] = true;
      --flight.left;
      into.push_back({number, one->to});
    }
  }
  if (flight.answers && effects.again.size() > before) again_.insert(number);
  if (flight.left > 0) return;
  effects.over.push_back(number);
  open_.erase(at);
}

void CastOrigin::done(std::uint64_t hop, std::uint64_t number, Effects& effects) {
  const auto at = open_.find(number);
  if (at == open_.end()) return;
  // Handed over is not handled: one before it may still be on another way.
  settle_all(at, [&](const Entrusted& one) { return one.hop == hop; }, nullptr);
  if (at->second.left > 0) return;
  effects.over.push_back(number);
  open_.erase(at);
}

void CastOrigin::lost_hop(std::uint64_t hop, Effects& effects) {
  ++epoch_;
  for (auto at = open_.begin(); at != open_.end(); ++at) {
    const std::size_t before = effects.again.size();
    settle_all(at, [&](const Entrusted& one) { return one.hop == hop; }, &effects.again);
    if (at->second.answers && effects.again.size() > before) again_.insert(at->first);
  }
  end_settled(effects);
}

void CastOrigin::lost_proc(std::uint64_t proc, Effects& effects) {
  ++epoch_;
  for (auto at = open_.begin(); at != open_.end(); ++at) {
    settle_all(at, [&](const Entrusted& one) { return one.to.proc == proc; }, nullptr);
  }
  end_settled(effects);
}

}  // namespace monarch::wire
