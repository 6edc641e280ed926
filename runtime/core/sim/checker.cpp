#include "sim/checker.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

namespace monarch::sim {
namespace {

using Id = std::uint64_t;
using Pair = std::pair<Id, Id>;

constexpr std::size_t kMost = 8;  // of what is broken, that is told

class Checker {
 public:
  Verdict run(const History& history, const std::vector<Id>& ranks) {
    for (const Event& event : history) take(event);
    if (calm_) finish(ranks);
    return std::move(verdict_);
  }

 private:
  struct Way {
    std::uint64_t sent = 0;
    std::uint64_t handled = 0;
  };
  struct Proc {
    Id lineage = 0;
    std::uint64_t generation = 0;
    bool started = false;
    std::optional<base::Instant> ended = {};
    std::uint64_t deaths = 0;
  };

  void broken(const std::string& what, const Event& event) {
    if (verdict_.broken.size() < kMost) verdict_.broken.push_back(what + ": " + line(event));
  }

  void take(const Event& event) {
    switch (event.what) {
      case What::kSent:
        ++ways_[{event.at, event.other}].sent;
        return;
      case What::kHandled:
        handled(event);
        return;
      case What::kCalled:
        ++verdict_.calls;
        open_[{event.at, event.number}] = event;
        return;
      case What::kAnswered:
      case What::kFailed:
        if (open_.erase({event.at, event.number}) == 0) broken("a call ended twice", event);
        if (event.what == What::kAnswered && calm_) answered_.insert(event.other);
        return;
      case What::kFenced:
        fenced_.insert({event.at, event.other});
        return;
      case What::kSpawned:
        spawned(event);
        return;
      case What::kDeath:
        death(event);
        return;
      case What::kStarted:
        procs_[event.other].started = true;
        return;
      case What::kEnded:
        procs_[event.other].ended = event.time;
        return;
      case What::kRefused:
        broken("a session was refused", event);
        return;
      case What::kFault:
        severe_ = severe_ || !event.text.starts_with("reset");
        return;
      case What::kCalm:
        calm_ = event;
        return;
      case What::kLost:
      case What::kCast:
        return;
    }
  }

  void handled(const Event& event) {
    ++verdict_.handled;
    Way& way = ways_[{event.other, event.at}];
    if (event.number >= way.sent) broken("what was never sent was handled", event);
    if (event.number < way.handled) broken("handled twice, or out of order", event);
    if (event.number > way.handled) broken("a message before it was lost", event);
    way.handled = event.number + 1;
    if (fenced_.contains({event.at, event.other})) {
      broken("a message of one that was declared dead had an effect", event);
    }
    if (const auto found = procs_.find(event.other); found != procs_.end()) {
      std::uint64_t& latest = latest_[{event.at, found->second.lineage}];
      if (found->second.generation < latest) {
        broken("an old incarnation acted after its successor", event);
      }
      latest = std::max(latest, found->second.generation);
    }
  }

  void spawned(const Event& event) {
    Proc& proc = procs_[event.other];
    proc.lineage = event.other;
    if (const auto old = procs_.find(event.number); event.number != 0 && old != procs_.end()) {
      proc.lineage = old->second.lineage;
      proc.generation = old->second.generation + 1;
    }
  }

  void death(const Event& event) {
    ++verdict_.deaths;
    Proc& proc = procs_[event.other];
    if (++proc.deaths > 1) broken("a death was told twice", event);
    if (!severe_) broken("a death was told, and nothing but connections broke", event);
    if (proc.ended) {
      verdict_.slowest_death = std::max(verdict_.slowest_death, event.time - *proc.ended);
    }
  }

  // All faults are over since a while: what was begun has come to its end.
  void finish(const std::vector<Id>& ranks) {
    for (const auto& [key, event] : open_) {
      const auto caller = procs_.find(event.at);
      if (caller == procs_.end() || !caller->second.ended) broken("a call never ended", event);
    }
    for (const auto& [id, proc] : procs_) {
      const Event event{.time = calm_->time, .what = What::kEnded, .other = id};
      if (proc.ended && proc.deaths == 0) broken("a death was never told", event);
      if (proc.started && !proc.ended && proc.deaths != 0) broken("one that was declared dead lives on", event);
    }
    for (const Id id : ranks) {
      const Event event{.time = calm_->time, .what = What::kAnswered, .other = id};
      if (!answered_.contains(id)) broken("a rank does not answer again", event);
    }
    for (const auto& [pair, way] : ways_) {
      const auto [from, to] = pair;
      if (dead(from) || dead(to) || fenced_.contains(pair) || fenced_.contains({to, from})) continue;
      if (way.handled == way.sent) continue;
      broken("a message never arrived",
             {.time = calm_->time, .what = What::kSent, .at = from, .other = to,
              .number = way.handled});
    }
  }

  [[nodiscard]] bool dead(Id id) const {
    const auto found = procs_.find(id);
    return found != procs_.end() && found->second.ended.has_value();
  }

  Verdict verdict_;
  std::map<Pair, Way> ways_;
  std::set<Pair> fenced_;                    // who decided, about whom
  std::map<Pair, std::uint64_t> latest_;     // generation heard of, by receiver and lineage
  std::map<Id, Proc> procs_;
  std::map<Pair, Event> open_;               // calls
  std::set<Id> answered_;                    // since the calm
  std::optional<Event> calm_;
  bool severe_ = false;                      // there was a fault that may cost a process
};

}  // namespace

Verdict check(const History& history, const std::vector<std::uint64_t>& ranks) {
  return Checker().run(history, ranks);
}

}  // namespace monarch::sim
