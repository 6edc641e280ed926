// Large messages, whose parts travel ahead of them: through shared memory where the receiver can
// map it, in chunks where it cannot, or by hand within the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "actor/payload.hpp"
#include "base/bytes.hpp"
#include "net/arena.hpp"
#include "net/poller.hpp"
#include "wire/transfer.hpp"

namespace monarch::actor {

// From here on a message is large.
inline constexpr std::size_t k_large = 64U << 10;
// A frame carries at most this much of a large one. What is above it waits until the socket has
// taken what came before, so that a link never has more than a chunk per sender in memory.
inline constexpr std::size_t k_chunk = 256U << 10;
inline constexpr std::size_t k_whole = 1U << 20;

// How the parts of a message got to one receiver.
struct Shipment {
  enum class How : std::uint8_t { kInline, kSegment, kChunks, kLocal } how = How::kInline;
  std::uint64_t id = 0;     // of the segment or the transfer
  std::uint64_t epoch = 0;  // of the link that they went by: they are gone with it
  std::shared_ptr<const void> hold;
  Payload local;
};

// A message and what became of its parts so far, one Shipment per receiver.
class Shipping {
 public:
  // `procs`: the process of each receiver. The views stay valid until the message is sent.
  Shipping(std::vector<std::uint64_t> procs, base::Bytes data, std::span<const base::Bytes> buffers);

  [[nodiscard]] Shipment& operator[](std::size_t index) noexcept { return shipments_[index]; }

 private:
  friend class Engine;
  // The pieces of bytes [from, to) of the payload as it is laid out.
  [[nodiscard]] std::vector<base::Bytes> pieces(std::size_t from, std::size_t to) const;
  void copy_to(std::byte* out) const noexcept;

  std::vector<std::uint64_t> procs_;
  std::vector<base::Bytes> parts_;  // the pickled data, then the buffers
  std::vector<std::uint64_t> lengths_;
  wire::Layout layout_;
  std::vector<Shipment> shipments_;
  std::vector<std::size_t> missed_;  // receivers that had no segment for it
  std::size_t next_ = 0;             // receiver
  std::size_t sent_ = 0;             // bytes, in chunks, to that receiver
};

// Segments of peers that nobody here has a view of any more, on the way back to them. Any thread
// may add to it, with whatever locks it holds.
struct Returns {
  std::mutex mutex;
  std::vector<std::pair<net::PeerId, net::SegmentId>> segments;
  std::atomic<bool> any{false};
  net::Poller* poller = nullptr;  // to be woken; none once it is gone
};

// A payload that comes in chunks.
struct Incoming {
  std::shared_ptr<std::byte[]> storage;
  std::size_t total = 0;
  std::size_t filled = 0;
};

}  // namespace monarch::actor
