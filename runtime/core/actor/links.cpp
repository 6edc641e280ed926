// Links: how they are made, made again, lost and refused.
#include <sys/socket.h>

#include <tuple>

#include "actor/engine.hpp"

namespace monarch::actor {

base::Result<void> Engine::add_link(std::uint64_t id, int fd,
                                    std::unique_ptr<net::TlsStream> tls, bool session) {
  auto link = std::make_unique<net::Link>(fd, std::move(tls), session);
  const Lock lock(mutex_);
  Peer& peer = peer_of(id);
  if (stopping_ || peer.failure != nullptr || id == proc_ || (peer.link && peer.second)) {
    return base::Error{base::Code::kArgument,
                       stopping_ ? "the engine has stopped"
                                 : "process " + std::to_string(id) +
                                       (id == proc_              ? " is this one"
                                        : peer.failure != nullptr ? " has failed before"
                                                                  : " has its links already")};
  }
  const std::uint64_t token = next_token_++;
  if (auto added = poller_.add(fd, token); !added) return added;
  peer.watch.join(clock_.now());
  net::Link& made = *link;
  watched_[token] = {.fd = fd, .peer = &peer, .link = &made};
  if (peer.link) {
    peer.second = std::move(link);
    read_pending(peer, made);
    return {};
  }
  peer.link = std::move(link);
  peer.dialing = false;
  if (casting_.places.contains(id)) casting_.origin.changed();
  for (Waiter* waiter : space_waiters_) notify(*waiter);
  std::deque<Parked> parked = std::exchange(peer.parked, {});
  for (const Parked& item : parked) {
    const base::Bytes head = std::as_bytes(std::span(item.head));
    // Too large a message was refused when it was parked.
    (void)send(peer, item.kind, head, {}, {}, item.payload.data, item.payload.buffers);
  }
  flush(peer);
  wake_caretaker();  // heartbeats begin
  read_pending(peer, made);
  return {};
}

void Engine::come_back(std::uint64_t id) {
  push_event({.kind = Event::Kind::kAlive, .peer = id});
  if (casting_.places.contains(id)) casting_.origin.changed();
}

// What came with the end of the handshake makes the socket readable no more.
void Engine::read_pending(Peer& peer, net::Link& link) {
  if (!link.pending()) return;
  receive(peer, link);
  flush_all();
}

void Engine::receive(Peer& peer, net::Link& link) {
  const bool open =
      link.receive([&](wire::Frame& frame) { return handle_frame(peer, link, frame); });
  if (!open) {
    if (&link == peer.link.get() && link.resumable() && !stopping_) {
      suspend(peer, link.why());
    } else {
      lose(peer, link.why());
    }
  } else if (link.acknowledge(/*now=*/false) || link.went_on()) {
    flush(peer);
  }
}

void Engine::suspend(Peer& peer, const std::string& why) {
  net::Link& link = *peer.link;
  if (link.broken()) return;
  if (const auto token = token_of(link.fd())) watched_.erase(*token);
  poller_.remove(link.fd());
  link.break_off();
  peer.watch.break_off(clock_.now());
  broken_.push_back(&peer);
  Event event{.kind = Event::Kind::kBroken, .peer = peer.id};
  event.text = why;
  push_event(std::move(event));
  wake_caretaker();
}

base::Result<void> Engine::resume_link(std::uint64_t id, int fd,
                                       std::unique_ptr<net::TlsStream> tls) {
  return reconnect(id, fd, std::move(tls), /*again=*/false);
}

base::Result<void> Engine::begin_link_again(std::uint64_t id, int fd,
                                            std::unique_ptr<net::TlsStream> tls) {
  return reconnect(id, fd, std::move(tls), /*again=*/true);
}

wire::Meeting Engine::meet(std::uint64_t id, bool going_on, bool dialling, bool stands) {
  const Lock lock(mutex_);
  const Peer& peer = peer_of(id);
  const bool untouched = peer.link != nullptr && peer.link->untouched();
  return peer.watch.meet(going_on, dialling, stands, untouched);
}

base::Result<void> Engine::reconnect(std::uint64_t id, int fd, std::unique_ptr<net::TlsStream> tls,
                                     bool again) {
  net::Descriptor held(fd);
  const Lock lock(mutex_);
  Peer& peer = peer_of(id);
  const bool session = peer.link != nullptr && peer.link->resumable();
  if (stopping_ || !session || (again && !peer.link->untouched())) {
    return base::Error{base::Code::kArgument,
                       "process " + std::to_string(id) + " has no session to go on with"};
  }
  net::Link& link = *peer.link;
  const std::uint64_t token = next_token_++;
  if (auto added = poller_.add(fd, token); !added) return added;
  if (!link.broken()) {
    if (const auto last = token_of(link.fd())) watched_.erase(*last);
    poller_.remove(link.fd());
  }
  if (again) {
    link.begin_again(held.release(), std::move(tls));
  } else {
    link.resume(held.release(), std::move(tls));
  }
  if (peer.watch.resume(clock_.now())) come_back(id);
  watched_[token] = {.fd = fd, .peer = &peer, .link = &link};
  std::erase(broken_, &peer);
  flush(peer);
  read_pending(peer, link);
  return {};
}

void Engine::set_heartbeat(std::uint64_t id, base::Duration heartbeat, int misses) {
  const Lock lock(mutex_);
  Peer& peer = peer_of(id);
  peer.pace = wire::Pace{.beat = heartbeat, .misses = misses};
  rhythm_.sooner(clock_.now() + heartbeat);
  wake_caretaker();
}

void Engine::lose_link(std::uint64_t id, std::string why) {
  const Lock lock(mutex_);
  if (const auto found = peers_.find(id); found != peers_.end()) lose(*found->second, std::move(why));
}

bool Engine::is_broken(std::uint64_t id) {
  const Lock lock(mutex_);
  const auto found = peers_.find(id);
  return found != peers_.end() && found->second->watch.broken();
}

// A connection that ended is made again at once or not at all: where nobody does, its peer is gone.
std::optional<base::Instant> Engine::end_broken(base::Instant now) {
  std::optional<base::Instant> due;
  for (Peer* peer : std::vector<Peer*>(broken_)) {
    const wire::Pace& pace = pace_of(*peer);
    if (peer->watch.look(now, pace).over) {
      lose(*peer, "its connection ended, and no other one came");
    } else if (const auto end = peer->watch.ends(pace)) {
      due = due ? std::min(*due, *end) : *end;
    }
  }
  return due;
}

// Cuts all links, for a test: their ends are read like any other.
void Engine::cut_links() {
  for (const auto& [id, peer] : peers_) {
    if (peer->link != nullptr) ::shutdown(peer->link->fd(), SHUT_RDWR);
  }
}

constexpr std::uint64_t kParked = ~std::uint64_t{0};  // waits for the first link
constexpr std::uint64_t kDropped = kParked - 1;       // there is no link any more

void Engine::mark(Inbox& inbox, std::uint32_t rank, const Peer& peer) const {
  if (peer.id == proc_ || (peer.link != nullptr && peer.link->written() == peer.link->queued())) {
    return;
  }
  inbox.marks.emplace_back(rank, peer.link != nullptr ? peer.link->queued()
                                 : peer.watch.left()  ? kDropped
                                                      : kParked);
}

bool Engine::was_sent(const Inbox& inbox, std::uint32_t rank, const Peer& peer) const {
  for (const auto& [marked, end] : inbox.marks) {
    if (marked != rank) continue;
    return end == kParked ? peer.watch.ever_joined() : end <= peer.written;
  }
  return true;
}

void Engine::drop_links(Peer& peer) {
  const bool had = peer.link != nullptr;
  if (had) peer.written = peer.link->written();
  for (auto* slot : {&peer.link, &peer.second}) {
    if (*slot == nullptr) continue;
    if (const auto token = token_of((*slot)->fd())) watched_.erase(*token);
    poller_.remove((*slot)->fd());
    slot->reset();
  }
  std::erase(dirty_, &peer);
  std::erase(broken_, &peer);
  forget_payloads(peer);
  if (had) lose_casts(peer, /*stalled=*/false);
}

void Engine::close_link(std::uint64_t id) {
  const Lock lock(mutex_);
  Peer& peer = peer_of(id);
  if (peer.link == nullptr) return;
  flush(peer);
  drop_links(peer);
  peer.watch.leave();
}

bool Engine::has_link(std::uint64_t id) {
  const Lock lock(mutex_);
  const auto found = peers_.find(id);
  return found != peers_.end() && found->second->link != nullptr;
}

void Engine::lose(Peer& peer, std::string why) {
  if (peer.link == nullptr) return;
  drop_links(peer);
  peer.watch.leave();
  Event event{.kind = Event::Kind::kLinkLost, .peer = peer.id};
  event.text = std::move(why);
  push_event(std::move(event));
}

void Engine::fail_peer(std::uint64_t id, std::string payload) {
  const Lock lock(mutex_);
  Peer& peer = peer_of(id);
  if (peer.failure != nullptr) return;
  drop_links(peer);
  peer.watch.fence();
  for (const Parked& parked : std::exchange(peer.parked, {})) {
    if (parked.kind != wire::Kind::kCall) continue;
    base::Bytes head = std::as_bytes(std::span(parked.head));
    if (const auto call = wire::read_call(head)) {
      give_back(id, *call, proc_, static_cast<std::uint8_t>(Status::kUnsent));
    }
  }
  peer.failure = std::make_shared<const std::string>(std::move(payload));
  const base::Bytes bytes = std::as_bytes(std::span(*peer.failure));
  std::vector<std::tuple<std::uint64_t, std::uint32_t, Status>> open;
  for (const auto& [inbox_id, inbox] : inboxes_) {
    if (inbox->targets == nullptr) continue;
    for (std::uint32_t rank = 0; rank < inbox->targets->list.size(); ++rank) {
      if (inbox->targets->list[rank].peer == &peer && !inbox->answered[rank]) {
        open.emplace_back(inbox_id, rank,
                          was_sent(*inbox, rank, peer) ? Status::kFailed : Status::kUnsent);
      }
    }
  }
  for (const auto& [inbox, rank, status] : open) {
    arrive(inbox, {rank, static_cast<std::uint8_t>(status), copy_payload(bytes, {})});
  }
  for (auto& [actor, outlet] : peer.outlets) outlet->outstanding = 0;
  credit_came();
}

base::Result<void> Engine::hand_over(std::uint64_t id, int fd, base::Bytes data) {
  auto held = std::make_shared<net::Descriptor>(fd);
  const Lock lock(mutex_);
  Peer& peer = peer_of(id);
  if (peer.link == nullptr || !peer.link->passes_descriptors()) {
    return base::Error{base::Code::kArgument, "process " + std::to_string(id) +
                                                  " has no link here that passes descriptors"};
  }
  if (auto sent = peer.link->send_descriptor(wire::Kind::kHandOver, data, fd, std::move(held));
      !sent) {
    return sent;
  }
  flush(peer);
  return {};
}

}  // namespace monarch::actor
