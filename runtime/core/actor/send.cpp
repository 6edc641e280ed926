// What leaves this process, or goes from one of its actors to another.
#include <algorithm>
#include <array>

#include "actor/engine.hpp"
#include "base/fault.hpp"
#include "wire/encoder.hpp"

namespace monarch::actor {
namespace {

using base::Bytes;

constexpr std::size_t kMessageCost = 192;         // what a queued message takes besides its bytes
constexpr std::size_t kFlushAt = 32 << 10;        // bytes gathered before they go out in any case
constexpr std::uint32_t kAlone = 2;  // messages between two waits that are no burst
constexpr base::Duration kBurst = std::chrono::microseconds(100);

std::size_t cost_of(const Message& message) noexcept {
  std::size_t cost = kMessageCost + message.data.size();
  for (const Bytes buffer : message.buffers) cost += buffer.size();
  return cost;
}

Bytes bytes_of(std::string_view text) noexcept { return std::as_bytes(std::span(text)); }

}  // namespace

base::Result<void> Engine::send(Peer& peer, wire::Kind kind, Bytes head, std::string_view endpoint,
                                std::string_view extent, Bytes data,
                                std::span<const Bytes> buffers) {
  const std::array<Bytes, 4> parts{head, bytes_of(endpoint), bytes_of(extent), data};
  if (peer.link == nullptr) {
    if (peer.watch.left() || peer.failure != nullptr || stopping_) return {};
    const wire::FrameShape shape = wire::shape_of(parts, buffers);
    if (auto fits = wire::check_limits(shape, buffers.size()); !fits) return fits;
    Parked parked{.kind = kind, .head = {}, .payload = copy_payload(data, buffers)};
    for (const Bytes part : std::span(parts).first<3>()) {
      parked.head.append(reinterpret_cast<const char*>(part.data()), part.size());
    }
    peer.parked.push_back(std::move(parked));
    if (!std::exchange(peer.dialing, true)) push_event({.kind = Event::Kind::kDial, .peer = peer.id});
    return {};
  }
  if (auto sent = peer.link->send(kind, parts, buffers); !sent) return sent;
  after_send(peer);
  return {};
}

// Writes at once, unless there was more a moment ago: what comes in a burst goes out together,
// when a thread waits, when there is enough of it, or when the caretaker comes by.
void Engine::after_send(Peer& peer) {
  net::Link& link = *peer.link;
  if (link.waits_for_space) return;
  if (std::exchange(link.wait, waits_) != waits_) link.burst = 0;
  if (++link.burst > kAlone && link.unsent() < kFlushAt) {
    const base::Instant now = clock_.now();
    if (now - link.last_flush < kBurst) {
      if (!std::exchange(link.dirty, true)) dirty_.push_back(&peer);
      delay_flush(now);
      return;
    }
  }
  flush(peer);
}

void Engine::flush(Peer& peer) {
  net::Link& link = *peer.link;
  link.last_flush = clock_.now();
  if (!link.flush()) return;  // its end is read like any other
  if (!space_waiters_.empty() && link.unsent() < k_chunk) {
    for (Waiter* waiter : space_waiters_) notify(*waiter);
  }
  update_writing(peer);
}

void Engine::update_writing(Peer& peer) {
  net::Link& link = *peer.link;
  if (link.broken()) return;
  const bool waits = link.has_to_write();
  if (waits == link.waits_for_space) return;
  link.waits_for_space = waits;
  if (const auto token = token_of(link.fd())) {
    poller_.set_interest(link.fd(), *token, true, waits);
  }
}

void Engine::flush_all() {
  flush_armed_ = false;
  return_segments();
  if (dirty_.empty()) return;
  for (Peer* peer : std::exchange(dirty_, {})) {
    if (peer->link == nullptr) continue;
    peer->link->dirty = false;
    if (!peer->link->waits_for_space) flush(*peer);
  }
}

std::shared_ptr<const std::string> Engine::tell(std::uint64_t id, Bytes data) {
  const Lock lock(mutex_);
  if (id == proc_) {
    Event event{.kind = Event::Kind::kControl, .peer = id};
    event.payload = copy_payload(data, {});
    push_event(std::move(event));
    return nullptr;
  }
  Peer& peer = peer_of(id);
  if (peer.failure != nullptr) return peer.failure;
  ++peer.told;
  (void)send(peer, wire::Kind::kControl, data, {}, {}, {}, {});
  return nullptr;
}

std::shared_ptr<Outlet> Engine::outlet_of(Peer& peer, std::uint64_t actor) {
  if (peer.outlets.size() >= peer.most_outlets) {
    // A little credit that never came back is forgotten with its outlet.
    std::erase_if(peer.outlets, [](const auto& item) {
      return item.second.use_count() == 1 && item.second->outstanding < k_chunk;
    });
    peer.most_outlets = std::max(peer.most_outlets, 2 * peer.outlets.size());
  }
  std::shared_ptr<Outlet>& outlet = peer.outlets[actor];
  if (outlet == nullptr) outlet = std::make_shared<Outlet>();
  return outlet;
}

std::shared_ptr<const Targets> Engine::targets(std::span<const std::uint64_t> procs,
                                               std::span<const std::uint64_t> actors) {
  const Lock lock(mutex_);
  auto made = std::make_shared<Targets>();
  made->list.reserve(procs.size());
  for (std::size_t i = 0; i < procs.size(); ++i) {
    Peer& peer = peer_of(procs[i]);
    made->list.push_back({&peer, actors[i], outlet_of(peer, actors[i])});
  }
  return made;
}

base::Result<void> Engine::send_call(const Target& target, std::uint32_t rank,
                                     const Message& message, std::uint64_t reply_proc,
                                     std::uint64_t inbox, std::size_t cost,
                                     std::size_t index) {
  const bool by_reply = inbox != 0 && reply_proc == 0;
  if (target.peer->id == proc_) {
    auto request = std::make_shared<Request>();
    request->actor = target.actor;
    request->sender_proc = proc_;
    request->sender = message.sender;
    request->reply_proc = reply_proc == 0 ? proc_ : reply_proc;
    request->inbox = inbox;
    request->rank = rank;
    request->flags = message.flags;
    request->endpoint = message.endpoint;
    request->extent = message.extent;
    request->payload = message.shipping != nullptr ? std::move((*message.shipping)[index].local)
                                                   : copy_payload(message.data, message.buffers);
    request->cost = by_reply ? 0 : cost;
    target.outlet->outstanding += cost;
    deliver(std::move(request));
    return {};
  }
  std::array<std::byte, wire::k_call_head> head;
  wire::write_call({.actor = target.actor,
                    .sender = message.sender,
                    .reply_proc = reply_proc,
                    .inbox = inbox,
                    .rank = rank,
                    .flags = message.flags,
                    .endpoint = message.endpoint,
                    .extent = message.extent},
                   head);
  if (base::reached(base::Boundary::kRequestQueued)) cut_links();
  send_barrier(*target.peer);
  base::Result<void> sent;
  if (!travels_apart(message.shipping, index)) {
    sent = send(*target.peer, wire::Kind::kCall, head, message.endpoint, message.extent,
                message.data, message.buffers);
  } else if (send_attachment(*target.peer, *message.shipping, (*message.shipping)[index])) {
    sent = send(*target.peer, wire::Kind::kCall, head, message.endpoint, message.extent, {}, {});
  }
  if (sent) {
    target.outlet->outstanding += cost;
    target.peer->out.passed();
  }
  if (base::reached(base::Boundary::kRequestWritten)) cut_links();
  return sent;
}

base::Result<std::shared_ptr<Inbox>> Engine::call(const std::shared_ptr<const Targets>& targets,
                                                  const Message& message) {
  const Lock lock(mutex_);
  auto inbox = std::make_shared<Inbox>();
  inbox->id = next_inbox_++;
  inbox->expected = targets->list.size();
  inbox->answered.resize(inbox->expected);
  inbox->sender = message.sender;
  inbox->targets = targets;
  inbox->cost = cost_of(message);
  inboxes_.emplace(inbox->id, inbox);
  std::vector<bool> by_tree;
  if (!casting_.relays.empty()) {
    send_by_tree(*targets, message, 0, inbox->id, 0, inbox->cost, by_tree);
  }
  std::uint32_t rank = 0;
  for (const Target& target : targets->list) {
    if (!by_tree.empty() && by_tree[rank]) {
      ++rank;
      continue;
    }
    if (target.peer->failure != nullptr) {
      const Bytes why = bytes_of(*target.peer->failure);
      target.outlet->outstanding += inbox->cost;
      arrive(inbox->id, {rank, static_cast<std::uint8_t>(Status::kUnsent), copy_payload(why, {})});
    } else if (auto sent = send_call(target, rank, message, 0, inbox->id, inbox->cost, rank);
               !sent) {
      // The size is the same for all: the first is refused or none.
      inboxes_.erase(inbox->id);
      return std::move(sent).error();
    } else {
      mark(*inbox, rank, *target.peer);
    }
    ++rank;
  }
  return inbox;
}

base::Result<void> Engine::cast(const Targets& targets, const Message& message,
                                std::uint64_t reply_proc, std::uint64_t inbox,
                                std::uint32_t rank) {
  const Lock lock(mutex_);
  const std::size_t cost = cost_of(message);
  std::vector<bool> by_tree;
  if (!casting_.relays.empty()) {
    send_by_tree(targets, message, reply_proc, inbox, rank, cost, by_tree);
  }
  std::size_t index = 0;
  for (const Target& target : targets.list) {
    if (!by_tree.empty() && by_tree[index]) {
      // on its way
    } else if (target.peer->failure == nullptr) {
      auto sent = send_call(target, rank, message, reply_proc, inbox, cost, index);
      if (!sent) return sent;
    } else if (inbox != 0) {
      send_reply(reply_proc, {inbox, rank, static_cast<std::uint8_t>(Status::kUnsent)},
                 bytes_of(*target.peer->failure), {}, nullptr);
    } else {
      give_back(target.peer->id,
                {.actor = target.actor,
                 .sender = message.sender,
                 .flags = message.flags,
                 .endpoint = message.endpoint},
                proc_, static_cast<std::uint8_t>(Status::kUnsent));
    }
    ++rank;
    ++index;
  }
  return {};
}

void Engine::send_reply(std::uint64_t proc, const wire::Reply& reply, Bytes data,
                        std::span<const Bytes> buffers, base::Result<void>* outcome,
                        Shipping* shipping) {
  if (proc == proc_) {
    arrive(reply.inbox, {reply.rank, reply.status,
                         shipping != nullptr ? std::move((*shipping)[0].local)
                                             : copy_payload(data, buffers)});
    return;
  }
  if (base::reached(base::Boundary::kReplyQueued)) cut_links();
  std::array<std::byte, wire::k_reply_head> head;
  wire::write_reply(reply, head);
  Peer& peer = peer_of(proc);
  if (travels_apart(shipping, 0)) {
    if (!send_attachment(peer, *shipping, (*shipping)[0])) return;
    data = {};
    buffers = {};
  }
  auto sent = send(peer, wire::Kind::kReply, head, {}, {}, data, buffers);
  if (outcome != nullptr) *outcome = std::move(sent);
  if (base::reached(base::Boundary::kReplyWritten)) cut_links();
}

base::Result<void> Engine::post(std::uint64_t proc, std::uint64_t inbox, std::uint32_t rank,
                                std::uint8_t status, Bytes data, std::span<const Bytes> buffers,
                                Shipping* shipping) {
  const Lock lock(mutex_);
  base::Result<void> outcome;
  ++peer_of(proc).told;
  send_reply(proc, {inbox, rank, status}, data, buffers, &outcome, shipping);
  return outcome;
}

base::Result<void> Engine::post_from(std::uint64_t sender, std::uint64_t proc, std::uint64_t inbox,
                                     std::uint32_t rank, Status status, Bytes data,
                                     std::span<const Bytes> buffers, Shipping* shipping) {
  const Lock lock(mutex_);
  const auto error = status == Status::kOk ? std::uint16_t{0} : k_port_error;
  const wire::Call call{.actor = inbox,
                        .sender = sender,
                        .rank = rank,
                        .flags = static_cast<std::uint16_t>(k_port | error)};
  if (proc == proc_) {
    if (!arrive(inbox, {rank, static_cast<std::uint8_t>(status),
                        shipping != nullptr ? std::move((*shipping)[0].local)
                                            : copy_payload(data, buffers)})) {
      give_back(proc, call, proc_, static_cast<std::uint8_t>(Status::kUndelivered));
    }
    return {};
  }
  Peer& peer = peer_of(proc);
  if (peer.failure != nullptr) {
    give_back(proc, call, proc_, static_cast<std::uint8_t>(Status::kUnsent));
    return {};
  }
  ++peer.told;
  std::array<std::byte, wire::k_call_head> head;
  wire::write_call(call, head);
  if (!travels_apart(shipping, 0)) return send(peer, wire::Kind::kCall, head, {}, {}, data, buffers);
  if (!send_attachment(peer, *shipping, (*shipping)[0])) return {};
  return send(peer, wire::Kind::kCall, head, {}, {}, {}, {});
}

base::Result<void> Engine::reply(const std::shared_ptr<Request>& request, std::uint8_t status,
                                 Bytes data, std::span<const Bytes> buffers, Shipping* shipping) {
  const Lock lock(mutex_);
  if (request->inbox == 0) return {};
  if (request->replied) {
    return base::Error{base::Code::kArgument,
                       "endpoint " + request->endpoint + " was replied to before"};
  }
  base::Result<void> outcome;
  if (!request->cancelled) {
    // Who has the answer may end this process at once, and is not told that the call was running.
    if ((request->flags & k_explicit) == 0) {
      board_.leave(std::exchange(request->line, Board::k_none));
    }
    answer(*request, status, data, buffers, &outcome, shipping);
    if (!outcome) return outcome;
  }
  request->replied = true;
  retire(request);
  return outcome;
}

bool Engine::has_credit_locked(const Targets& targets) const {
  return std::ranges::all_of(targets.list, [this](const Target& target) {
    return target.outlet->outstanding < limits_.window || target.peer->failure != nullptr;
  });
}

bool Engine::has_credit(const Targets& targets) {
  const Lock lock(mutex_);
  return has_credit_locked(targets);
}

void Engine::credit_came() {
  for (Waiter* waiter : credit_waiters_) notify(*waiter);
}

void Engine::give_credit(std::uint64_t proc, std::uint64_t target, std::size_t bytes) {
  Peer& peer = peer_of(proc);
  if (proc == proc_) {
    if (const auto found = peer.outlets.find(target); found != peer.outlets.end()) {
      found->second->outstanding -= std::min(found->second->outstanding, bytes);
      credit_came();
    }
    return;
  }
  std::size_t& owed = peer.owed[target];
  owed += bytes;
  if (owed >= limits_.window / 8) give_back_credit(peer, target, std::exchange(owed, 0));
}

void Engine::give_back_credit(Peer& peer, std::uint64_t target, std::size_t bytes) {
  std::array<std::byte, wire::k_pair_head> head;
  wire::write_credit({.target = target, .bytes = bytes}, head);
  (void)send(peer, wire::Kind::kCredit, head, {}, {}, {}, {});
}

}  // namespace monarch::actor
