#include "net/mappings.hpp"

#include <unistd.h>

#include <atomic>
#include <string>
#include <utility>

namespace monarch::net {

struct Loan::Owner {
  const ::pid_t process = ::getpid();
  std::atomic<std::size_t> loans{0};
  mutable std::mutex mutex;
  std::shared_ptr<const Mappings::Release> release;  // none once the Mappings are gone
  using Segments = std::unordered_map<SegmentId, std::shared_ptr<const Pages>>;
  std::unordered_map<PeerId, Segments> peers;

  // What to call when a loan of this segment ends, if anything.
  [[nodiscard]] std::shared_ptr<const Mappings::Release> releaser(PeerId peer,
                                                                  SegmentId id) const {
    const std::lock_guard lock(mutex);
    const auto found = peers.find(peer);
    if (found == peers.end() || !found->second.contains(id)) return nullptr;
    return release;
  }
};

Loan::Loan(Key, std::shared_ptr<Owner> owner, std::shared_ptr<const Pages> pages, PeerId peer,
           SegmentId id, base::MutableBytes bytes) noexcept
    : owner_(std::move(owner)), pages_(std::move(pages)), peer_(peer), id_(id), bytes_(bytes) {
  owner_->loans.fetch_add(1, std::memory_order_relaxed);
}

Loan::~Loan() {
  owner_->loans.fetch_sub(1, std::memory_order_relaxed);
  // The mutex of a forked child may have been held by a thread that it does not have.
  if (owner_->process != ::getpid()) return;
  if (const auto release = owner_->releaser(peer_, id_)) (*release)(peer_, id_);
}

Mappings::Mappings(Release release) : owner_(std::make_shared<Loan::Owner>()) {
  owner_->release = std::make_shared<const Release>(std::move(release));
}

Mappings::~Mappings() {
  decltype(owner_->peers) unmapped;
  const std::lock_guard lock(owner_->mutex);
  owner_->release = nullptr;
  owner_->peers.swap(unmapped);
}

base::Result<void> Mappings::add(PeerId peer, SegmentId id, Descriptor file,
                                 std::size_t capacity) {
  if (auto fits = check_shared(file, capacity); !fits) return fits;
  auto pages = map_shared(file, capacity);
  if (!pages) return std::move(pages).error();
  auto shared = std::make_shared<const Pages>(*std::move(pages));
  const std::lock_guard lock(owner_->mutex);
  const bool added = owner_->peers[peer].try_emplace(id, std::move(shared)).second;
  if (added) return {};
  return base::Error{base::Code::kMalformed, "the peer announced its shared-memory segment " +
                                                 std::to_string(id) + " twice"};
}

base::Result<std::shared_ptr<Loan>> Mappings::open(PeerId peer, SegmentId id, std::size_t bytes) {
  std::shared_ptr<const Pages> pages;
  {
    const std::lock_guard lock(owner_->mutex);
    if (const auto found = owner_->peers.find(peer); found != owner_->peers.end()) {
      const auto segment = found->second.find(id);
      if (segment != found->second.end()) pages = segment->second;
    }
  }
  if (pages == nullptr) {
    return base::Error{base::Code::kMalformed,
                       "the peer sent a payload in a shared-memory segment " + std::to_string(id) +
                           " that it did not announce"};
  }
  if (bytes > pages->size()) {
    return base::Error{base::Code::kMalformed,
                       "the peer sent a payload of " + std::to_string(bytes) +
                           " bytes in a shared-memory segment of " + std::to_string(pages->size())};
  }
  const base::MutableBytes all(pages->data(), bytes);
  return std::make_shared<Loan>(Loan::Key{}, owner_, std::move(pages), peer, id, all);
}

std::shared_ptr<const void> Mappings::drop(PeerId peer, SegmentId id) {
  const std::lock_guard lock(owner_->mutex);
  const auto found = owner_->peers.find(peer);
  if (found == owner_->peers.end()) return nullptr;
  const auto segment = found->second.extract(id);
  return segment.empty() ? nullptr : segment.mapped();
}

std::shared_ptr<const void> Mappings::drop_peer(PeerId peer) {
  const std::lock_guard lock(owner_->mutex);
  auto found = owner_->peers.extract(peer);
  if (found.empty()) return nullptr;
  return std::make_shared<const Loan::Owner::Segments>(std::move(found.mapped()));
}

std::size_t Mappings::size() const {
  const std::lock_guard lock(owner_->mutex);
  std::size_t count = 0;
  for (const auto& [peer, segments] : owner_->peers) count += segments.size();
  return count;
}

std::size_t Mappings::loans() const { return owner_->loans.load(std::memory_order_relaxed); }

}  // namespace monarch::net
