// The way by the tree to one group of receivers. Relays keep their part of it under its number, so that
// a later cast to the same group says only that, what comes before it for all, and who differs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "wire/cast.hpp"
#include "wire/cast_origin.hpp"
#include "wire/message.hpp"

namespace monarch::wire {

class CastRoute {
 public:
  using Entrusted = CastOrigin::Entrusted;
  struct Member {
    Receiver to;
    std::size_t place = 0;  // of its relay
  };
  struct Message {
    std::uint64_t relay = 0;  // below the root
    Kind kind = Kind::kCast;  // or kRecast
    std::vector<std::byte> head;  // a call message follows
  };

  // `hops` as shape() gives them, to the relays of all members and more; `relays` by place. Members
  // in any order, each rank once.
  CastRoute(const CastOrigin& origin, std::span<const Hop> hops,
            std::span<const std::uint64_t> relays, std::vector<Member> members);

  // Whether one that is made now would be the same; `usable(relay)` says to whom there is a link.
  [[nodiscard]] bool holds(const CastOrigin& origin,
                           const std::function<bool(std::uint64_t)>& usable) const {
    return epoch_ == origin.epoch() &&
           std::ranges::all_of(stops_, [&](const Stop& stop) { return usable(stop.relay); });
  }
  // Who gets a cast, in order of rank. What comes before it, for each, the caller fills in.
  [[nodiscard]] const std::vector<Entrusted>& receivers() const noexcept { return receivers_; }

  // Begins the origin's next cast; gives what is to be sent. `receivers` as above.
  [[nodiscard]] std::vector<Message> begin(CastOrigin& origin, std::uint64_t self,
                                           std::vector<Entrusted> receivers, bool answers);

 private:
  struct Stop {
    std::uint64_t relay = 0;
    std::size_t from = 0;  // of stops_, or k_root
    std::vector<std::size_t> members;  // of receivers_
  };

  [[nodiscard]] bool differs_little(Recast& recast, std::span<const Entrusted> receivers) const;
  [[nodiscard]] std::vector<Message> plans(const Cast& cast, std::span<const Entrusted> receivers);
  [[nodiscard]] std::vector<Message> again(const Recast& recast,
                                           std::span<const Entrusted> receivers) const;

  std::uint64_t epoch_;
  std::vector<Stop> stops_;  // who is above comes first
  std::vector<Entrusted> receivers_;
  std::uint64_t number_ = 0;  // that relays have it by; 0 for none
};

}  // namespace monarch::wire
