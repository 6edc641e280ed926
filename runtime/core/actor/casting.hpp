// What the engine keeps of casts: messages that reach processes of other hosts by way of the agents
// there. docs/runtime/cast.md has the whole of it, wire/cast.hpp the state machines.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actor/mailbox.hpp"
#include "actor/payload.hpp"
#include "wire/cast_lane.hpp"
#include "wire/cast_origin.hpp"
#include "wire/cast_relay.hpp"
#include "wire/message.hpp"

namespace monarch::actor {

// What keeps its order whichever way it comes: a request or, without one, a cancellation.
struct Ordered {
  std::shared_ptr<Request> request;
  wire::Cancel cancel;
};

// An answer that went to a relay, in case it is asked for again.
struct Given {
  std::uint64_t inbox = 0;
  std::uint32_t rank = 0;
  std::uint8_t status = 0;
  std::string payload;
};

using Lane = wire::ReceiveLane<Ordered, Given>;

// A cast that is not settled, in case it has to be sent again.
struct Flying {
  wire::Call call;  // without its names, actor and rank
  std::string endpoint;
  std::string extent;
  Payload payload;
};

struct Casting {
  wire::CastOrigin origin;
  std::unordered_map<std::uint64_t, Flying> flying;  // by number
  wire::CastRelay relay;
  base::Instant relaying_until{};  // its messages are waited for

  std::vector<std::uint64_t> relays;                        // by place in the tree
  std::unordered_map<std::uint64_t, std::size_t> places;    // by relay
  std::set<std::pair<std::uint64_t, std::uint64_t>> edges;  // relays with a link between them
};

}  // namespace monarch::actor
