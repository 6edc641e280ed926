// A host agent between who casts and who receives: it hands out, passes on, and gathers answers, of
// which equal ones are stored once.
//
// What comes back goes up when all of it is there, or, so that one that is slow does not hold the
// others, a while after the first of it came: as long again as that took, within limits. A relay keeps no message: it says what it missed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "wire/cast.hpp"
#include "wire/message.hpp"

namespace monarch::wire {

struct RelayLimits {
  base::Duration least = std::chrono::microseconds(300);    // that answers wait for others
  base::Duration most = std::chrono::milliseconds(2);
  base::Duration done = std::chrono::milliseconds(20);      // what is no answer waits as long
  std::size_t bytes = 256U << 10;  // of answers, at which they go up in any case
  std::size_t numbers = 64;        // of casts that are done, likewise
  std::size_t routes = k_routes;
};

class CastRelay {
 public:
  struct Report {
    std::uint64_t to = 0;
    Kind kind = Kind::kGathered;
    std::vector<std::byte> message;
  };
  // What is to be done after an event.
  struct Effects {
    std::vector<Report> forward;    // kCast or kRecast, in front of the call message
    std::vector<Receiver> deliver;  // the cast, here
    std::vector<Report> reports;
  };

  CastRelay() = default;
  explicit CastRelay(RelayLimits limits) : limits_(limits) {}

  // A cast has come from `from`, which is its origin or another relay. `linked(process)` says to
  // whom there is a link. Fails for what is no plan.
  [[nodiscard]] base::Result<void> cast(std::uint64_t from, const Cast& cast, base::Bytes plan,
                                        const std::function<bool(std::uint64_t)>& linked,
                                        base::Instant now, Effects& effects);
  // Likewise, by a plan that it was to keep. Where it has not, all are missed.
  void recast(std::uint64_t from, const Recast& recast,
              const std::function<bool(std::uint64_t)>& linked, base::Instant now, Effects& effects);
  void answer(std::uint64_t from, const Answer& answer, base::Bytes payload, base::Instant now,
              Effects& effects);
  void gathered(std::uint64_t from, const Gathered& gathered, base::Instant now, Effects& effects);
  void done(std::uint64_t from, const Done& done, base::Instant now, Effects& effects);
  // The link to a process has ended, or is as good as ended.
  void lost(std::uint64_t peer, base::Instant now, Effects& effects);

  // When expire() has something to do.
  [[nodiscard]] std::optional<base::Instant> due() const;
  void expire(base::Instant now, Effects& effects);

  [[nodiscard]] std::size_t flights() const noexcept { return flights_.size(); }

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // origin and number
  struct Edge {
    std::uint64_t peer = 0;
    Ranks open = {};  // that it owes an answer, or word that they were handed it
  };
  struct Flight {
    std::uint64_t parent = 0;
    base::Instant since{};
    bool answers = false;
    bool armed = false;  // in due_
    std::vector<Edge> edges = {};
    std::unordered_map<std::string, Ranks> groups = {};  // by status and payload
    std::size_t bytes = 0;
  };
  using Flights = std::map<Key, Flight>;
  struct Finished {
    std::vector<std::uint64_t> numbers;
    base::Instant since{};
  };

  // What is kept of a plan.
  struct Route {
    struct Below {
      std::uint64_t relay = 0;
      Ranks ranks;
    };
    std::vector<Receiver> receivers;
    std::vector<Below> below;
  };

  void keep(const Cast& cast, const Plan& plan);
  [[nodiscard]] const Route* kept(const Cast& cast) const;
  void hand_over(Flight& flight, const Receiver& to,
                 const std::function<bool(std::uint64_t)>& linked, Effects& effects);
  // Whether a cast goes on to a relay: not where it is missed.
  bool pass_on(Flight& flight, std::uint64_t relay, const Ranks& ranks,
               const std::function<bool(std::uint64_t)>& linked);
  void add(Flight& flight, std::uint32_t status, base::Bytes payload, const Ranks& ranks);
  Flights::iterator settle(Flights::iterator flight, base::Instant now, Effects& effects);
  void report(const Key& key, Flight& flight, Effects& effects);
  void finish(const Key& key, std::uint64_t parent, base::Instant now, Effects& effects);

  RelayLimits limits_;
  Flights flights_;
  std::set<std::pair<base::Instant, Key>> due_;  // some are gone since
  std::map<Key, Finished> finished_;  // by parent and origin
  std::unordered_map<std::uint64_t, std::map<std::uint64_t, Route>> routes_;  // by origin
};

}  // namespace monarch::wire
