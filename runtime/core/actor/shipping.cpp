#include "actor/shipping.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <new>

#include "actor/engine.hpp"
#include "net/copy.hpp"

namespace monarch::actor {
namespace {

using base::Bytes;

// Larger segments are made for a peer only when a second payload would have used one: until then
// they would be memory for nothing.
constexpr std::size_t kCheap = std::size_t{64} << 20;
constexpr std::size_t kMostOffers = 16;  // that a peer has not answered
constexpr base::Duration kExhausted = std::chrono::seconds(10);
constexpr std::array<std::byte, wire::k_part_alignment> kZeros{};

}  // namespace

Shipping::Shipping(std::vector<std::uint64_t> procs, Bytes data, std::span<const Bytes> buffers)
    : procs_(std::move(procs)), shipments_(procs_.size()) {
  parts_.reserve(buffers.size() + 1);
  parts_.push_back(data);
  parts_.insert(parts_.end(), buffers.begin(), buffers.end());
  lengths_.reserve(parts_.size());
  for (const Bytes part : parts_) lengths_.push_back(part.size());
  // They are in memory: their sum fits.
  layout_ = wire::layout_of(lengths_).value_or(wire::Layout{});
}

std::vector<Bytes> Shipping::pieces(std::size_t from, std::size_t to) const {
  std::vector<Bytes> found;
  for (std::size_t i = 0; i < parts_.size() && from < to; ++i) {
    const std::size_t begin = layout_.offsets[i];
    const std::size_t end = begin + parts_[i].size();
    if (from < begin) {
      found.push_back(Bytes(kZeros).first(std::min(begin, to) - from));
      from = std::min(begin, to);
    }
    if (from < end && from < to) {
      const std::size_t until = std::min(end, to);
      found.push_back(parts_[i].subspan(from - begin, until - from));
      from = until;
    }
  }
  return found;
}

void Shipping::copy_to(std::byte* out) const noexcept {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    net::copy_payload({out + layout_.offsets[i], parts_[i].size()}, parts_[i]);
  }
}

// Brings the parts to their receivers, one after the other; copies without the lock.
Waited Engine::ship(Shipping& shipping) {
  const std::size_t total = shipping.layout_.total;
  for (; shipping.next_ < shipping.procs_.size(); ++shipping.next_) {
    const std::uint64_t proc = shipping.procs_[shipping.next_];
    Shipment& shipment = shipping.shipments_[shipping.next_];
    if (proc == proc_) {
      shipment.local = copy_payload(shipping.parts_.front(), std::span(shipping.parts_).subspan(1));
      shipment.how = Shipment::How::kLocal;
      continue;
    }
    if (shipment.how == Shipment::How::kInline) {
      bool passes = false;
      {
        Lock lock(mutex_);
        Peer& peer = peer_of(proc);
        // Only with a link are they cut into chunks, and fit into frames.
        if (total > wire::k_default_limit / 2 || shipping.parts_.size() > wire::k_max_buffers) {
          const Waited waited = wait_link(lock, peer);
          if (waited != Waited::kDone) return waited;
        }
        if (peer.link == nullptr) continue;  // it is parked with its message, or lost
        shipment.epoch = peer.epoch;
        passes = peer.link->passes_descriptors() && limits_.segments > 0;
      }
      if (passes) {
        if (auto segment = arena_.take_known(proc, total); segment.ok() && segment->id != 0) {
          shipping.copy_to(segment->data);
          shipment.id = segment->id;
          shipment.hold = segment->hold;
          shipment.how = Shipment::How::kSegment;
          continue;
        }
        shipping.missed_.push_back(shipping.next_);
      }
      if (total <= k_whole) continue;
      const Lock lock(mutex_);
      shipment.id = next_transfer_++;
      shipment.how = Shipment::How::kChunks;
      shipping.sent_ = 0;
    }
    const Waited waited = send_chunks(shipping, shipment, proc);
    if (waited != Waited::kDone) return waited;
  }
  return Waited::kDone;
}

Waited Engine::wait_link(Lock& lock, Peer& peer) {
  const auto settled = [&] { return peer.link != nullptr || peer.watch.left() || peer.failure != nullptr; };
  if (settled()) return Waited::kDone;
  if (!std::exchange(peer.dialing, true)) push_event({.kind = Event::Kind::kDial, .peer = peer.id});
  return wait_space(lock, settled);
}

Waited Engine::send_chunks(Shipping& shipping, const Shipment& shipment, std::uint64_t proc) {
  const std::size_t total = shipping.layout_.total;
  Lock lock(mutex_);
  Peer& peer = peer_of(proc);
  const auto open = [&] { return peer.link != nullptr && peer.epoch == shipment.epoch; };
  while (shipping.sent_ < total) {
    const Waited waited = wait_space(lock, [&] { return !open() || peer.link->unsent() < k_chunk; });
    if (waited != Waited::kDone) return waited;
    if (!open()) break;
    const std::size_t end = std::min(total, shipping.sent_ + k_chunk);
    std::array<std::byte, wire::k_chunk_head> head;
    wire::write_chunk({.id = shipment.id, .total = total}, head);
    std::vector<Bytes> pieces = shipping.pieces(shipping.sent_, end);
    pieces.insert(pieces.begin(), head);
    (void)peer.link->send(wire::Kind::kChunk, pieces, {});
    flush(peer);
    shipping.sent_ = end;
  }
  return Waited::kDone;
}

bool Engine::travels_apart(const Shipping* shipping, std::size_t index) {
  if (shipping == nullptr) return false;
  const auto how = shipping->shipments_[index].how;
  return how == Shipment::How::kSegment || how == Shipment::How::kChunks;
}

bool Engine::send_attachment(Peer& peer, const Shipping& shipping, const Shipment& shipment) {
  if (peer.link == nullptr || peer.epoch != shipment.epoch) return false;
  const auto message = wire::attach_message(
      {.source = shipment.how == Shipment::How::kSegment ? wire::Source::kSegment
                                                         : wire::Source::kChunks,
       .id = shipment.id,
       .lengths = shipping.lengths_});
  return peer.link->send(wire::Kind::kAttach, std::array{Bytes(message)}, {}).ok();
}

// The message is not sent after all.
void Engine::abandon(Shipping& shipping) {
  const Lock lock(mutex_);
  for (std::size_t i = 0; i < shipping.shipments_.size(); ++i) {
    Shipment& shipment = shipping.shipments_[i];
    Peer& peer = peer_of(shipping.procs_[i]);
    if (peer.link == nullptr || peer.epoch != shipment.epoch) continue;
    if (shipment.how == Shipment::How::kSegment) {
      net::Leftovers left;
      (void)arena_.give_back(peer.id, shipment.id, left);
      clear_away(std::move(left));
    } else if (shipment.how == Shipment::How::kChunks) {
      std::array<std::byte, wire::k_chunk_head> head;
      wire::write_chunk({.id = shipment.id, .total = 0}, head);
      (void)send(peer, wire::Kind::kChunk, head, {}, {}, {}, {});
    }
    shipment.how = Shipment::How::kInline;
  }
}

// Makes segments for the next message of this size, while the receivers handle this one.
void Engine::offer(const Shipping& shipping) {
  const std::size_t total = shipping.layout_.total;
  for (const std::size_t index : shipping.missed_) {
    const std::uint64_t proc = shipping.procs_[index];
    std::uint64_t epoch = 0;
    {
      const Lock lock(mutex_);
      Peer& peer = peer_of(proc);
      if (peer.link == nullptr || peer.offers >= kMostOffers || clock_.now() < no_offers_until_) {
        continue;
      }
      if (total > kCheap && peer.missed.insert(std::bit_ceil(total)).second) continue;
      ++peer.offers;
      epoch = peer.epoch;
    }
    net::Leftovers left;
    // One more, also where one has come back since: they were all lent when this was sent.
    auto segment = arena_.take(proc, total, left, net::Arena::Which::kNew);
    const Lock lock(mutex_);
    Peer& peer = peer_of(proc);
    const bool open = peer.link != nullptr && peer.epoch == epoch;
    if (!segment.ok()) {
      if (open) --peer.offers;
      if (segment.error().code == base::Code::kSystem) exhausted(segment.error().message);
    } else if (!open) {
      // Its next link would be told of a payload in a segment that it was never sent.
      arena_.discard(proc, segment->id, left);
    } else {
      std::array<std::byte, wire::k_segment_head> head;
      wire::write_segment({.id = segment->id, .capacity = segment->capacity}, head);
      (void)peer.link->send_descriptor(wire::Kind::kSegment, head, segment->fd, segment->hold);
      after_send(peer);
    }
    clear_away(std::move(left));
  }
}

void Engine::exhausted(const std::string& why) {
  no_offers_until_ = clock_.now() + kExhausted;
  if (std::exchange(warned_, true)) return;
  Event event{.kind = Event::Kind::kWarning};
  event.text = "large messages travel by socket, which is slower: " + why;
  push_event(std::move(event));
}

// Under the lock: tells peers of segments that are gone, and leaves memory to the caretaker.
void Engine::clear_away(net::Leftovers left) {
  for (const auto& [proc, id] : left.dropped) {
    Peer& peer = peer_of(proc);
    if (peer.link == nullptr) continue;
    (void)send(peer, wire::Kind::kDrop, wire::ids_message({&id, 1}), {}, {}, {}, {});
  }
  garbage_.insert(garbage_.end(), std::make_move_iterator(left.memory.begin()),
                  std::make_move_iterator(left.memory.end()));
}

void Engine::trim() {
  const Lock lock(mutex_);
  return_segments();
  net::Leftovers left;
  arena_.trim(left);
  clear_away(std::move(left));
  flush_all();
  caretaker_condition_.notify_one();
}

// Called with each heartbeat: memory for large messages goes when there were none for a while.
void Engine::trim_segments(base::Instant now) {
  const net::Arena::Usage usage = arena_.usage();
  if (usage.loans != loans_seen_) {
    loans_seen_ = usage.loans;
    last_loan_ = now;
  } else if (usage.idle > 0 && now - last_loan_ >= limits_.keep_segments) {
    net::Leftovers left;
    arena_.trim(left);
    clear_away(std::move(left));
  }
}

void Engine::forget_payloads(Peer& peer) {
  ++peer.epoch;
  peer.offers = 0;
  peer.missed.clear();
  for (auto& attached : peer.attached) attached.reset();
  for (auto& [id, incoming] : peer.incoming) garbage_.push_back(std::move(incoming.storage));
  peer.incoming.clear();
  net::Leftovers left;
  arena_.forget(peer.id, left);
  clear_away(std::move(left));
  if (auto mapped = mappings_.drop_peer(peer.id)) garbage_.push_back(std::move(mapped));
  for (Waiter* waiter : space_waiters_) notify(*waiter);
}

void Engine::return_segments() {
  if (!returns_->any.load(std::memory_order_relaxed)) return;
  decltype(returns_->segments) segments;
  {
    const std::lock_guard lock(returns_->mutex);
    segments.swap(returns_->segments);
    returns_->any = false;
  }
  std::ranges::sort(segments);
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    ids.push_back(segments[i].second);
    if (i + 1 < segments.size() && segments[i + 1].first == segments[i].first) continue;
    if (Peer& peer = peer_of(segments[i].first); peer.link != nullptr) {
      (void)send(peer, wire::Kind::kRelease, wire::ids_message(ids), {}, {}, {}, {});
    }
    ids.clear();
  }
}

bool Engine::attach_payload(Peer& peer, net::Link& link, Bytes message) {
  auto attach = wire::read_attach(message);
  if (!attach) return false;
  const auto layout = wire::layout_of(attach->lengths);
  std::optional<Payload>& attached = peer.attached[&link == peer.link.get() ? 0 : 1];
  if (!layout || attached.has_value()) return false;
  Payload payload;
  const std::byte* start = nullptr;
  if (attach->source == wire::Source::kSegment) {
    auto loan = mappings_.open(peer.id, attach->id, layout->total);
    if (!loan) return false;
    start = (*loan)->bytes().data();
    payload.storage = std::shared_ptr<const std::byte[]>(*std::move(loan), start);
  } else {
    const auto found = peer.incoming.extract(attach->id);
    if (found.empty() || found.mapped().total != layout->total ||
        found.mapped().filled != layout->total) {
      return false;
    }
    payload.storage = std::move(found.mapped().storage);
    start = payload.storage.get();
  }
  for (std::size_t i = 0; i < attach->lengths.size(); ++i) {
    const Bytes part(start + layout->offsets[i], attach->lengths[i]);
    if (i == 0) {
      payload.data = part;
    } else {
      payload.buffers.push_back(part);
    }
  }
  attached = std::move(payload);
  return true;
}

bool Engine::take_chunk(Peer& peer, Bytes message) {
  const auto chunk = wire::read_chunk(message);
  if (!chunk) return false;
  if (chunk->total == 0) {
    peer.incoming.erase(chunk->id);
    return true;
  }
  Incoming& incoming = peer.incoming[chunk->id];
  if (incoming.storage == nullptr) {
    auto* const memory = static_cast<std::byte*>(
        ::operator new(chunk->total, std::align_val_t{wire::k_part_alignment}, std::nothrow));
    if (memory == nullptr) return false;
    constexpr auto kFree = [](std::byte* place) {
      ::operator delete(place, std::align_val_t{wire::k_part_alignment});
    };
    incoming.storage = std::shared_ptr<std::byte[]>(memory, kFree);
    incoming.total = chunk->total;
    if (incoming.total >= net::kFreshPayload) net::prepare_fresh({memory, incoming.total});
  }
  if (chunk->total != incoming.total || message.size() > incoming.total - incoming.filled) {
    return false;
  }
  std::memcpy(incoming.storage.get() + incoming.filled, message.data(), message.size());
  incoming.filled += message.size();
  return true;
}

// Frames about large payloads; false for what says nothing of ours.
bool Engine::handle_payload(Peer& peer, net::Link& link, const wire::Frame& frame) {
  net::Leftovers left;
  switch (static_cast<wire::Kind>(frame.header.kind)) {
    case wire::Kind::kSegment: {
      const auto offered = wire::read_segment(frame.message);
      if (!offered) return false;
      net::Descriptor file = link.take_descriptor();
      const bool accepted =
          file.get() >= 0 &&
          mappings_.add(peer.id, offered->id, std::move(file), offered->capacity).ok();
      std::array<std::byte, wire::k_mapped_head> head;
      wire::write_mapped({.id = offered->id, .accepted = accepted}, head);
      (void)send(peer, wire::Kind::kMapped, head, {}, {}, {}, {});
      return true;
    }
    case wire::Kind::kMapped: {
      const auto mapped = wire::read_mapped(frame.message);
      if (!mapped) return false;
      if (peer.offers > 0) --peer.offers;
      if (mapped->accepted) {
        (void)arena_.give_back(peer.id, mapped->id, left);
      } else {
        arena_.discard(peer.id, mapped->id, left);
        exhausted("process " + std::to_string(peer.id) + " could not map shared memory");
      }
      break;
    }
    case wire::Kind::kRelease: {
      const auto ids = wire::read_ids(frame.message);
      if (!ids) return false;
      for (const std::uint64_t id : *ids) (void)arena_.give_back(peer.id, id, left);
      break;
    }
    case wire::Kind::kDrop: {
      const auto ids = wire::read_ids(frame.message);
      if (!ids) return false;
      for (const std::uint64_t id : *ids) left.memory.push_back(mappings_.drop(peer.id, id));
      break;
    }
    case wire::Kind::kAttach:
      return attach_payload(peer, link, frame.message);
    case wire::Kind::kChunk:
      return take_chunk(peer, frame.message);
    default:
      return false;
  }
  clear_away(std::move(left));
  return true;
}

}  // namespace monarch::actor
