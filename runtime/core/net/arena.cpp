#include "net/arena.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace monarch::net {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 46;

bool contains(const std::vector<PeerId>& peers, PeerId peer) noexcept {
  return std::find(peers.begin(), peers.end(), peer) != peers.end();
}

}  // namespace

base::Result<Segment> Arena::take(PeerId peer, std::size_t bytes, Leftovers& left,
                                  Which which) {
  if (bytes > kLargest) {
    return base::Error{base::Code::kSystem, "shared memory of " + std::to_string(bytes) +
                                                " bytes is more than an address space has"};
  }
  const std::size_t capacity = std::bit_ceil(std::max(bytes, options_.smallest));
  Shared block;
  {
    const std::lock_guard lock(mutex_);
    block = lend_idle(peer, capacity, which == Which::kAny, true);
    if (block == nullptr) {
      while (blocks_.size() + making_ >= options_.most_segments && !idle_.empty()) {
        retire_oldest(left);
      }
      if (blocks_.size() + making_ >= options_.most_segments) {
        return base::Error{base::Code::kLimit, "all " + std::to_string(options_.most_segments) +
                                                   " shared-memory segments are lent"};
      }
      ++making_;
    }
  }
  if (block == nullptr) {
    auto made = make(peer, capacity);
    if (!made) return std::move(made).error();
    block = *std::move(made);
  }
  return fill(block, peer, bytes);
}

base::Result<Segment> Arena::take_known(PeerId peer, std::size_t bytes) {
  if (bytes > kLargest) return Segment{};
  Shared block;
  {
    const std::lock_guard lock(mutex_);
    block = lend_idle(peer, std::bit_ceil(std::max(bytes, options_.smallest)), true, false);
  }
  if (block == nullptr) return Segment{};
  return fill(block, peer, bytes);
}

// The youngest idle block of this capacity that the peer knows, else the youngest that it does not;
// either only where wanted.
Arena::Shared Arena::lend_idle(PeerId peer, std::size_t capacity, bool known, bool unknown) {
  const Shared* found = nullptr;
  for (auto it = idle_.rbegin(); it != idle_.rend(); ++it) {
    const Shared& block = blocks_.at(*it);
    if (block->pages.size() != capacity) continue;
    const bool has = contains(block->known, peer);
    if (has ? known : unknown && found == nullptr) found = &block;
    if (has && known) break;
  }
  if (found == nullptr) return nullptr;
  Block& block = **found;
  idle_.erase(block.place);
  idle_bytes_ -= block.reserved;
  block.lent_to = peer;
  block.filling = true;
  return *found;
}

base::Result<Arena::Shared> Arena::make(PeerId peer, std::size_t capacity) {
  const auto build = [&]() -> base::Result<Shared> {
    auto file = make_shared(capacity, options_.backing);
    if (!file) return std::move(file).error();
    auto pages = map_shared(*file, capacity);
    if (!pages) return std::move(pages).error();
    auto block = std::make_shared<Block>();
    block->file = *std::move(file);
    block->pages = *std::move(pages);
    return block;
  };
  auto built = build();
  const std::lock_guard lock(mutex_);
  --making_;
  if (!built) return built;
  Block& block = **built;
  block.id = next_++;
  block.lent_to = peer;
  block.filling = true;
  ++made_;
  blocks_.emplace(block.id, *built);
  return built;
}

base::Result<Segment> Arena::fill(const Shared& block, PeerId peer, std::size_t bytes) {
  base::Result<void> done;
  if (bytes > block->reserved) {
    const std::size_t page = page_size();
    const std::size_t end = std::min((bytes + page - 1) / page * page, block->pages.size());
    done = reserve(block->file, block->pages, block->reserved, end);
    if (done.ok()) {
      populate(block->pages, block->reserved, end);
      block->reserved = end;
    }
  }
  const std::lock_guard lock(mutex_);
  block->filling = false;
  if (!done) {
    // Peers that know it are not told: they go on holding a mapping of what was there before.
    blocks_.erase(block->id);
    return std::move(done).error();
  }
  ++loans_;
  const bool known = contains(block->known, peer);
  if (!known) block->known.push_back(peer);
  return Segment{block->id, block->file.get(), block->pages.data(), block->pages.size(), known,
                 block};
}

base::Result<void> Arena::give_back(PeerId peer, SegmentId id, Leftovers& left) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(id);
  if (found == blocks_.end() || found->second->lent_to != peer || found->second->filling) {
    return base::Error{base::Code::kArgument,
                       "segment " + std::to_string(id) + " is not lent to " + std::to_string(peer)};
  }
  Block& block = *found->second;
  block.lent_to.reset();
  block.place = idle_.insert(idle_.end(), id);
  idle_bytes_ += block.reserved;
  while (idle_bytes_ > options_.idle_budget) retire_oldest(left);
  return {};
}

void Arena::retire_oldest(Leftovers& left) {
  const auto found = blocks_.find(idle_.front());
  for (const PeerId peer : found->second->known) left.dropped.push_back({peer, found->first});
  idle_bytes_ -= found->second->reserved;
  idle_.pop_front();
  left.memory.push_back(std::move(found->second));
  blocks_.erase(found);
}

void Arena::discard(PeerId peer, SegmentId id, Leftovers& left) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(id);
  if (found == blocks_.end() || found->second->lent_to != peer || found->second->filling) return;
  for (const PeerId other : found->second->known) {
    if (other != peer) left.dropped.push_back({other, id});
  }
  left.memory.push_back(std::move(found->second));
  blocks_.erase(found);
}

void Arena::forget(PeerId peer, Leftovers& left) {
  const std::lock_guard lock(mutex_);
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    Block& block = *it->second;
    if (block.lent_to == peer) {
      left.memory.push_back(std::move(it->second));
      it = blocks_.erase(it);
    } else {
      std::erase(block.known, peer);
      ++it;
    }
  }
}

void Arena::trim(Leftovers& left) {
  const std::lock_guard lock(mutex_);
  while (!idle_.empty()) retire_oldest(left);
}

Arena::Usage Arena::usage() const {
  const std::lock_guard lock(mutex_);
  Usage usage;
  usage.idle = idle_.size();
  usage.idle_bytes = idle_bytes_;
  usage.lent = blocks_.size() - idle_.size();
  for (const auto& [id, block] : blocks_) {
    if (block->lent_to) usage.lent_bytes += block->pages.size();
  }
  usage.made = made_;
  usage.loans = loans_;
  return usage;
}

}  // namespace monarch::net
