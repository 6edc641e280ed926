// Who casts: what it has entrusted to the tree and nobody has said to be there. What the tree lost is
// sent again directly, which is as good as any direct message: it is not followed any further.
#pragma once

#include <cstdint>
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "wire/cast.hpp"

namespace monarch::wire {

class CastOrigin {
 public:
  // One receiver of a cast, and the relay below the root that it is reached by.
  struct Entrusted {
    Receiver to;
    std::uint64_t hop = 0;
  };
  struct Which {
    std::uint64_t number = 0;
    Receiver to;
  };
  // What is to be done after an event.
  struct Effects {
    std::vector<Which> again;  // to be sent directly
    std::vector<Which> there;  // are known to have it
    std::vector<std::uint64_t> over;  // casts that nothing is kept for any more; after `again`
  };

  explicit CastOrigin(std::size_t routes = k_routes) : most_routes_(routes) {}

  // The number that the next cast gets.
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  // Of all up to this number no answer will be asked for again.
  [[nodiscard]] std::uint64_t stable() const noexcept {
    const std::uint64_t open = open_.empty() ? next_ : open_.begin()->first;
    return std::min(open, again_.empty() ? next_ : *again_.begin()) - 1;
  }
  [[nodiscard]] std::size_t open() const noexcept { return open_.size(); }

  // Begins the cast next(); `receivers` in order of rank, at least one.
  void begin(std::vector<Entrusted> receivers, bool answers);
  // Nobody waits for an answer to this cast any more.
  void closed(std::uint64_t number) {
    if (!again_.empty()) again_.erase(number);
  }

  // A relay below the root says of ranks beyond it that they have answered, or (k_missed) were not
  // reached.
  void gathered(std::uint64_t hop, std::uint64_t number, std::uint32_t status, const Ranks& ranks,
                Effects& effects);
  // A relay below the root says that a cast was handed to all whom it had not named by then.
  void done(std::uint64_t hop, std::uint64_t number, Effects& effects);
  // The link to a relay below the root has ended.
  void lost_hop(std::uint64_t hop, Effects& effects);
  // A receiver is gone: nothing can be sent to it.
  void lost_proc(std::uint64_t proc, Effects& effects);

  // Routes made when this was another number are to be made again.
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  // A relay, or a link between two of them, is there that was not.
  void changed() noexcept { ++epoch_; }
  [[nodiscard]] std::uint64_t new_route() noexcept { return ++newest_route_; }
  // Whether relays that have kept a route keep it still.
  [[nodiscard]] bool keeps(std::uint64_t route) const noexcept {
    return route != 0 && newest_route_ - route < most_routes_;
  }

 private:
  struct Flight {
    std::vector<Entrusted> receivers;
    std::vector<bool> settled;
    bool answers = false;
    std::size_t left = 0;
  };
  using Open = std::map<std::uint64_t, Flight>;

  template <typename Found>
  void settle_all(Open::iterator flight, Found found, std::vector<Which>* into);
  void end_settled(Effects& effects);

  Open open_;
  std::set<std::uint64_t> again_;  // were sent again, and not closed since
  std::uint64_t next_ = 1;
  std::uint64_t epoch_ = 0;
  std::uint64_t newest_route_ = 0;
  std::size_t most_routes_;
};

}  // namespace monarch::wire
