// A host agent's part in casts: the product's relay, and what carries its effects between nodes.
#pragma once

#include <functional>
#include <span>
#include <utility>

#include "sim/node.hpp"
#include "wire/cast.hpp"
#include "wire/cast_relay.hpp"

namespace monarch::sim {

class Relaying {
 public:
  // What its node does for it.
  struct Ways {
    std::function<void(Id, wire::Kind, std::span<const base::Bytes>)> send;
    std::function<void(Duration, std::function<void()>)> later;
    std::function<bool(Id)> usable;
  };
  Relaying(const World& world, Ways ways) : world_(world), ways_(std::move(ways)) {}

  // Whether it was a message of casts.
  bool take(Id peer, wire::Kind kind, base::Bytes message);
  void lost(Id peer);

 private:
  void forward(const wire::CastRelay::Effects& effects, const wire::Cast& cast, base::Bytes call);
  void report(const wire::CastRelay::Effects& effects);

  const World& world_;
  const Ways ways_;
  wire::CastRelay relay_;
  Instant armed_{};
};

}  // namespace monarch::sim
