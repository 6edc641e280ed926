// The sending side of shared-memory payloads: segments that this process owns, fills, lends to one
// peer at a time and reuses. Faulting new memory in costs ten times the copy, so reuse is what
// makes them worth having.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "net/shared_memory.hpp"

namespace monarch::net {

using SegmentId = std::uint64_t;
using PeerId = std::uint64_t;

// A segment as lent. Its memory and its descriptor stay valid as long as a copy of this is kept,
// even when the peer dies meanwhile.
struct Segment {
  SegmentId id = 0;
  int fd = -1;  // the arena's own: to be sent, not closed
  std::byte* data = nullptr;
  std::size_t capacity = 0;
  bool known = false;  // whether this peer had the segment before, and so has its descriptor
  std::shared_ptr<const void> hold;
};

// A segment that is no more, and a peer that may still have it mapped.
struct Dropped {
  PeerId peer;
  SegmentId id;
};

// What a change left over: whom to tell, and memory that takes its time to free (a third of a
// millisecond per MiB), for a place where nobody waits.
struct Leftovers {
  std::vector<Dropped> dropped;
  std::vector<std::shared_ptr<const void>> memory;
};

struct ArenaOptions {
  std::size_t smallest = std::size_t{64} << 10;      // the first of the power-of-two classes
  std::size_t idle_budget = std::size_t{256} << 20;  // bytes kept in segments that nobody has
  std::size_t most_segments = 256;                   // each holds a descriptor
  Backing backing = Backing::kBest;
};

// All members may be called from any thread; none holds the lock while memory is copied, allocated
// or freed.
class Arena {
 public:
  explicit Arena(ArenaOptions options = {}) : options_(options) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() = default;

  enum class Which { kAny, kNew };

  // Lends `peer` a segment of at least `bytes` with memory behind them: one it had before if there
  // is one (not for kNew, which gets it one more), else an idle one, else a new one. Idle segments that have to go for it are added to
  // `left`. Errors: kSystem where memory or descriptors are exhausted, kLimit where
  // `most_segments` are lent.
  [[nodiscard]] base::Result<Segment> take(PeerId peer, std::size_t bytes,
                                           Leftovers& left, Which which = Which::kAny);

  // As take(), but only of segments that `peer` had before; an id of 0 where none is idle.
  [[nodiscard]] base::Result<Segment> take_known(PeerId peer, std::size_t bytes);

  // `peer` has no view of the segment any more. kArgument where it was not lent to this peer: then
  // nothing changes. Idle segments beyond the budget go, the longest idle first.
  [[nodiscard]] base::Result<void> give_back(PeerId peer, SegmentId id, Leftovers& left);

  // `peer` could not map the segment it was lent.
  void discard(PeerId peer, SegmentId id, Leftovers& left);

  // `peer` is gone. What it was lent is never used again: it may be stopped and still write there.
  void forget(PeerId peer, Leftovers& left);

  // Drops every idle segment.
  void trim(Leftovers& left);

  struct Usage {
    std::size_t lent = 0;
    std::size_t lent_bytes = 0;
    std::size_t idle = 0;
    std::size_t idle_bytes = 0;
    std::size_t made = 0;   // since the start: stands still where reuse works
    std::size_t loans = 0;  // since the start
  };
  [[nodiscard]] Usage usage() const;

 private:
  struct Block {
    SegmentId id = 0;
    Descriptor file;
    Pages pages;
    std::size_t reserved = 0;              // bytes from the start with memory behind them
    std::optional<PeerId> lent_to;         // none: idle
    bool filling = false;                  // take() is still at it
    std::vector<PeerId> known;             // peers that have the descriptor
    std::list<SegmentId>::iterator place;  // in idle_, while idle
  };
  using Shared = std::shared_ptr<Block>;

  [[nodiscard]] Shared lend_idle(PeerId peer, std::size_t capacity, bool known, bool unknown);
  [[nodiscard]] base::Result<Shared> make(PeerId peer, std::size_t capacity);
  [[nodiscard]] base::Result<Segment> fill(const Shared& block, PeerId peer, std::size_t bytes);
  void retire_oldest(Leftovers& left);

  const ArenaOptions options_;
  mutable std::mutex mutex_;
  std::unordered_map<SegmentId, Shared> blocks_;
  std::list<SegmentId> idle_;  // longest idle first
  std::size_t idle_bytes_ = 0;
  std::size_t making_ = 0;  // new ones on the way, made without the lock
  std::size_t made_ = 0;
  std::size_t loans_ = 0;
  SegmentId next_ = 1;
};

}  // namespace monarch::net
