// The receiving side of shared-memory payloads: segments of peers, mapped once and kept, and the
// loans that end with the last view of what was received.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "net/arena.hpp"
#include "net/shared_memory.hpp"

namespace monarch::net {

// What the peer put into a segment, ours until the last copy of the pointer goes.
class Loan {
 public:
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  ~Loan();

  [[nodiscard]] base::MutableBytes bytes() const noexcept { return bytes_; }

 private:
  friend class Mappings;
  struct Key {};

 public:
  struct Owner;
  Loan(Key, std::shared_ptr<Owner> owner, std::shared_ptr<const Pages> pages, PeerId peer,
       SegmentId id, base::MutableBytes bytes) noexcept;

 private:
  std::shared_ptr<Owner> owner_;
  std::shared_ptr<const Pages> pages_;  // stays mapped, whatever the peer does
  PeerId peer_;
  SegmentId id_;
  base::MutableBytes bytes_;
};

// All members may be called from any thread.
class Mappings {
 public:
  // Called once for every loan that ends while its peer has the segment, from the thread that drops
  // the last view, without a lock held. Not in a forked child: there the loan is the parent's.
  using Release = std::function<void(PeerId, SegmentId)>;

  explicit Mappings(Release release);
  Mappings(const Mappings&) = delete;
  Mappings& operator=(const Mappings&) = delete;
  // Loans may outlive this: their memory stays, nothing is called any more.
  ~Mappings();

  // Maps a segment that `peer` announced. `file` came with the announcement and is closed either
  // way. Errors: kMalformed where the file is smaller or the id is taken, kSystem.
  [[nodiscard]] base::Result<void> add(PeerId peer, SegmentId id, Descriptor file,
                                       std::size_t capacity);

  // The first `bytes` of the segment. kMalformed where the peer announced no such segment or the
  // bytes exceed it.
  [[nodiscard]] base::Result<std::shared_ptr<Loan>> open(PeerId peer, SegmentId id,
                                                         std::size_t bytes);

  // The peer dropped the segment, or is gone itself. The memory, where no view is left, is freed
  // with the last copy of what is returned.
  std::shared_ptr<const void> drop(PeerId peer, SegmentId id);
  std::shared_ptr<const void> drop_peer(PeerId peer);

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] std::size_t loans() const;  // that have not ended

 private:
  std::shared_ptr<Loan::Owner> owner_;
};

}  // namespace monarch::net
