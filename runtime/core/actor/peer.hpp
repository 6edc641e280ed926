// What the engine knows of another process: its links, what goes out to it, what came in halves.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "actor/casting.hpp"
#include "actor/inbox.hpp"
#include "actor/mailbox.hpp"
#include "actor/shipping.hpp"
#include "net/link.hpp"
#include "wire/cast_route.hpp"
#include "wire/watch.hpp"

namespace monarch::actor {

// Bytes that were sent to one receiver and not yet handled by it.
struct Outlet {
  std::size_t outstanding = 0;
};

// Something to send to a process that has no link yet.
struct Parked {
  wire::Kind kind;
  std::string head;
  Payload payload;
};

struct Peer {
  std::uint64_t id = 0;
  std::unique_ptr<net::Link> link;  // ours goes out here
  // The peer's, when both dialled at once: each side sends on its own and reads both.
  std::unique_ptr<net::Link> second;
  wire::Watch watch;
  std::optional<wire::Pace> pace = {};  // in place of the engine's
  std::uint64_t written = 0;  // bytes that had gone out when the link was lost
  bool dialing = false;
  std::shared_ptr<const std::string> failure;  // set by fail_peer
  std::deque<Parked> parked;
  std::unordered_map<std::uint64_t, std::shared_ptr<Outlet>> outlets;  // by actor or inbox there
  std::size_t most_outlets = 256;  // at which those that no target has any more are dropped
  std::unordered_map<std::uint64_t, std::size_t> owed;          // credit not yet given back to it

  // of casts
  std::uint64_t relay = 0;  // the agent of its host, where casts to it may go by that
  bool was_lost = false;    // it had a link once that ended: none go to it or come from it
  std::uint64_t told = 0;   // messages to it that its answers to casts are not to overtake
  wire::SendLane out;
  Lane in;

  // of large payloads; all of it ends with the link
  std::uint64_t epoch = 0;                          // counts the links that were lost
  std::array<std::optional<Payload>, 2> attached;   // to the next message on `link`, on `second`
  std::unordered_map<std::uint64_t, Incoming> incoming;
  std::size_t offers = 0;                           // segments it has not answered for
  std::unordered_set<std::size_t> missed;           // sizes for which there was none
};

// What a descriptor in the poller belongs to: a link, a worker's loop, or the user.
struct Watched {
  int fd = -1;
  Peer* peer = nullptr;
  net::Link* link = nullptr;
  Worker* worker = nullptr;
  std::uint64_t token = 0;
};

struct Target {
  Peer* peer;
  std::uint64_t actor;
  std::shared_ptr<Outlet> outlet;
};

// The way by the tree of agents to those of some targets whom it is shorter to reach by it.
struct Way {
  std::uint32_t rank = 0;    // of the first target
  std::vector<bool> linked;  // which targets were, below an agent
  std::vector<bool> by_tree;
  wire::CastRoute route;
};

struct Targets {
  std::vector<Target> list;
  mutable std::unique_ptr<Way> way;  // the last one; guarded as the engine is
};

}  // namespace monarch::actor
