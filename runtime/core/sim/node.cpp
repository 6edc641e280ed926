#include "sim/node.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace monarch::sim {
namespace {

using base::Bytes;
using wire::Kind;
using wire::Meeting;

constexpr std::size_t kHello = 16;  // who dials, and whether a session is to go on
constexpr std::size_t kAnswer = 8;
constexpr Duration kDial = seconds(5);  // less than what a healed cluster has to recover
constexpr Duration kLongestPause = milliseconds(100);

}  // namespace

void Node::start() { tick(); }

bool Node::linked(Id peer) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() && found->second.session != nullptr;
}

bool Node::fenced(Id peer) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() && found->second.watch.fenced();
}

bool Node::broken(Id peer) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() && found->second.watch.broken();
}

bool Node::usable(Id peer) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() && found->second.session != nullptr &&
         !found->second.watch.broken() && !found->second.watch.silent();
}

// Of the engine: what is sent, and when it looks at its peers.

void Node::send(Id id, Kind kind, std::span<const Bytes> parts) {
  Peer& peer = peers_[id];
  if (peer.session == nullptr) {
    if (peer.watch.left() || peer.watch.fenced()) return;
    Peer::Parked parked{.kind = kind, .message = {}};
    for (const Bytes part : parts) {
      parked.message.insert(parked.message.end(), part.begin(), part.end());
    }
    peer.parked.push_back(std::move(parked));
    if (!peer.dial) dial(id, peer, /*going_on=*/false);
    return;
  }
  queue(peer, kind, parts);
  flush(peer);
}

void Node::queue(Peer& peer, Kind kind, std::span<const Bytes> parts) {
  ++count_.frames_out;
  peer.session->send(static_cast<std::uint8_t>(kind), parts, {});
}

void Node::flush(Peer& peer) {
  while (peer.conn != 0) {
    const Bytes next = peer.session->next();
    if (next.empty()) return;
    const std::size_t size = shared_.network.write(peer.conn, id_, next);
    if (size == 0) return;
    peer.session->wrote(size);
  }
}

void Node::tick() {
  const Instant now = shared_.world.now();
  if (const auto away = rhythm_.due(now)) {
    rhythm_.again(now, shared_.pace.beat);
    for (auto& [id, peer] : peers_) {
      if (peer.session == nullptr || peer.watch.broken()) continue;
      peer.watch.excuse(now, *away);
      const wire::Watch::Due due = peer.watch.look(now, shared_.pace);
      if (due.ping) {
        queue(peer, Kind::kPing, {});
        flush(peer);
      }
      if (due.silent && !bent(Bend::kNoBeats)) {
        later(Duration::zero(), [this, id = id] { silent(id, true); });
      }
    }
  }
  Instant next = rhythm_.next();
  std::vector<Id> over;
  for (auto& [id, peer] : peers_) {
    if (!peer.watch.broken()) continue;
    if (peer.watch.look(now, shared_.pace).over) {
      over.push_back(id);
    } else if (const auto end = peer.watch.ends(shared_.pace)) {
      next = std::min(next, *end);
    }
  }
  for (const Id id : over) lose(id, peers_.at(id));
  later(next - now, [this] { tick(); });
}

void Node::read(Id id, Bytes bytes) {
  Peer& peer = peers_.at(id);
  if (peer.watch.heard(shared_.world.now())) silent(id, false);
  wire::Session* const session = peer.session.get();
  bool over = false;
  const auto taken = session->take(bytes, [&](wire::Frame& frame) {
    ++count_.frames_in;
    if (over) return true;  // it was given up by what came before
    const Kind kind = static_cast<Kind>(frame.header.kind);
    if (kind == Kind::kPing) {
      (void)session->acknowledge(/*now=*/true);
      queue(peer, Kind::kPong, {});
    } else if (kind != Kind::kPong) {
      if (bent(Bend::kSkip) && shared_.world.random.below(500) == 0) return true;
      take(id, kind, frame.message);
      if (bent(Bend::kTwice) && shared_.world.random.below(500) == 0) take(id, kind, frame.message);
      over = peer.session.get() != session;
    }
    return true;
  });
  if (over || peer.session == nullptr) return;
  if (!taken) {
    shared_.note(What::kRefused, id_, id);
    lose(id, peer);
    return;
  }
  (void)session->acknowledge(/*now=*/false);
  (void)session->went_on();
  flush(peer);
}

void Node::suspend(Id id, Peer& peer) {
  if (peer.watch.broken()) return;
  if (!is_far(id) || bent(Bend::kHasty)) {
    lose(id, peer);
    return;
  }
  conns_.erase(peer.conn);
  shared_.network.close(std::exchange(peer.conn, 0), id_);
  peer.watch.break_off(shared_.world.now());
  if (may_dial(id) && !peer.dial) dial(id, peer, /*going_on=*/true);
  // The caretaker looks again when the break is over.
  later(shared_.pace.break_limit(), [this, id] {
    Peer& broken = peers_.at(id);
    if (!broken.watch.broken()) return;
    if (broken.watch.look(shared_.world.now(), shared_.pace).over) lose(id, broken);
  });
}

void Node::drop(Peer& peer) {
  if (peer.conn != 0) {
    conns_.erase(peer.conn);
    shared_.network.close(std::exchange(peer.conn, 0), id_);
  }
  if (peer.session != nullptr) {
    // It may be in the middle of handing out a frame.
    later(Duration::zero(), [kept = std::shared_ptr<wire::Session>(std::move(peer.session))] {});
  }
}

void Node::lose(Id id, Peer& peer) {
  if (peer.session == nullptr) return;
  drop(peer);
  peer.watch.leave();
  shared_.note(What::kLost, id_, id);
  later(Duration::zero(), [this, id] { lost(id); });
}

void Node::give_up(Id id) { lose(id, peers_[id]); }

void Node::fail(Id id) {
  Peer& peer = peers_[id];
  if (peer.watch.fenced()) return;
  shared_.note(What::kFenced, id_, id);
  if (peer.dial) {
    conns_.erase(peer.dial->conn);
    shared_.network.close(peer.dial->conn, id_);
    peer.dial.reset();
  }
  peer.parked.clear();
  if (bent(Bend::kNoFence)) return;
  drop(peer);
  peer.watch.fence();
}

// Of the gate: who dials, who is let in.

void Node::dial(Id id, Peer& peer, bool going_on) {
  const Duration limit = going_on ? shared_.pace.break_limit() : kDial;
  peer.dial = Dial{.going_on = going_on, .until = shared_.world.now() + limit};
  knock(id, peer);
}

void Node::knock(Id id, Peer& peer) {
  Dial& dial = *peer.dial;
  if (dial.going_on ? !peer.watch.broken() : peer.session != nullptr) {
    peer.dial.reset();  // by whosever doing
    return;
  }
  dial.conn = shared_.network.connect(id_, id);
  conns_[dial.conn] = id;
  // A try ends after a while, however silent the other side is.
  later(seconds(5), [this, id, conn = dial.conn] {
    Peer& dialled = peers_.at(id);
    if (!dialled.dial || dialled.dial->conn != conn) return;
    conns_.erase(conn);
    shared_.network.close(conn, id_);
    again(id, dialled);
  });
}

// The try has failed: another one later, unless it has been long enough.
void Node::again(Id id, Peer& peer) {
  Dial& dial = *peer.dial;
  dial.conn = 0;
  if (shared_.world.now() >= dial.until) {
    const bool going_on = dial.going_on;
    peer.dial.reset();
    if (going_on) {
      give_up(id);
    } else {
      later(Duration::zero(), [this, id] { lost(id); });
    }
    return;
  }
  const std::uint64_t tries = ++dial.tries;
  const Duration pause = dial.pause;
  dial.pause = std::min(2 * pause, kLongestPause);
  later(pause, [this, id, tries] {
    Peer& dialled = peers_.at(id);
    if (dialled.dial && dialled.dial->conn == 0 && dialled.dial->tries == tries) knock(id, dialled);
  });
}

void Node::connected(Conn conn) {
  const auto found = conns_.find(conn);
  if (found == conns_.end()) return;
  const Peer& peer = peers_.at(found->second);
  if (!peer.dial || peer.dial->conn != conn) return;
  std::array<std::byte, kHello> hello{};
  base::store_little(base::MutableBytes(hello), id_);
  hello[8] = static_cast<std::byte>(peer.dial->going_on);
  (void)shared_.network.write(conn, id_, hello);
}

void Node::refused(Conn conn) {
  const auto found = conns_.find(conn);
  if (found == conns_.end()) return;
  const Id id = found->second;
  conns_.erase(found);
  Peer& peer = peers_.at(id);
  if (!peer.dial || peer.dial->conn != conn) return;
  if (peer.dial->going_on) peer.dial->until = shared_.world.now();  // nobody is there any more
  again(id, peer);
}

void Node::accepted(Conn conn) { guests_[conn]; }

void Node::guest(Conn conn, Bytes bytes) {
  std::vector<std::byte>& said = guests_.at(conn);
  said.insert(said.end(), bytes.begin(), bytes.end());
  if (said.size() < kHello) return;
  const Id id = base::load_little<std::uint64_t>(said);
  const bool going_on = said[8] != std::byte{0};
  guests_.erase(conn);
  Peer& peer = peers_[id];
  const bool dialling = peer.dial.has_value();
  const bool stands = id_ < id && dialling && peer.dial->conn != 0;
  Meeting how = peer.watch.meet(going_on, dialling, stands,
                                peer.session != nullptr && peer.session->untouched());
  if (how == Meeting::kTake && !is_far(id) && peer.watch.left()) how = Meeting::kGone;
  std::array<std::byte, kAnswer> answer{static_cast<std::byte>(how)};
  (void)shared_.network.write(conn, id_, answer);
  if (how == Meeting::kGone || how == Meeting::kDuplicate) {
    shared_.network.close(conn, id_);
  } else {
    adopt(id, conn, how);
  }
}

void Node::answered(Id id, Conn conn, Bytes bytes) {
  Peer& peer = peers_.at(id);
  // It fits into one segment, and what sent it wrote nothing before.
  const auto how = static_cast<Meeting>(bytes[0]);
  const bool going_on = peer.dial->going_on;
  const bool done = going_on ? !peer.watch.broken() : peer.session != nullptr;
  if (done || how == Meeting::kGone || how == Meeting::kDuplicate) {
    conns_.erase(conn);
    shared_.network.close(conn, id_);
    if (done) {
      peer.dial.reset();
      return;
    }
    if (how == Meeting::kGone && going_on) peer.dial->until = shared_.world.now();
    again(id, peer);
    return;
  }
  peer.dial.reset();
  adopt(id, conn, going_on ? Meeting::kGoOn : Meeting::kTake);
  if (bytes.size() > kAnswer) read(id, bytes.subspan(kAnswer));
}

void Node::adopt(Id id, Conn conn, Meeting how) {
  const Instant now = shared_.world.now();
  Peer& peer = peers_.at(id);
  if (peer.conn != 0) {
    conns_.erase(peer.conn);
    shared_.network.close(peer.conn, id_);
  }
  peer.conn = conn;
  conns_[conn] = id;
  if (how == Meeting::kTake) {
    peer.session = std::make_unique<wire::Session>();
    peer.watch.join(now);
    for (const Peer::Parked& parked : std::exchange(peer.parked, {})) {
      const Bytes message(parked.message);
      queue(peer, parked.kind, {&message, 1});
    }
  } else {
    if (how == Meeting::kBegin || bent(Bend::kForgetTaken)) {
      peer.session->begin_again();
    } else {
      peer.session->resume();
    }
    if (peer.watch.resume(now)) silent(id, false);
  }
  flush(peer);
}

// Of the network.

void Node::received(Conn conn, Bytes bytes) {
  if (guests_.contains(conn)) {
    guest(conn, bytes);
    return;
  }
  const auto found = conns_.find(conn);
  if (found == conns_.end()) return;
  const Id id = found->second;
  const Peer& peer = peers_.at(id);
  if (peer.conn == conn) {
    read(id, bytes);
  } else if (peer.dial && peer.dial->conn == conn) {
    answered(id, conn, bytes);
  }
}

void Node::writable(Conn conn) {
  const auto found = conns_.find(conn);
  if (found == conns_.end()) return;
  Peer& peer = peers_.at(found->second);
  if (peer.conn == conn) flush(peer);
}

void Node::ended(Conn conn) {
  if (guests_.erase(conn) != 0) {
    shared_.network.close(conn, id_);
    return;
  }
  const auto found = conns_.find(conn);
  if (found == conns_.end()) return;
  const Id id = found->second;
  Peer& peer = peers_.at(id);
  if (peer.conn == conn) {
    suspend(id, peer);
  } else if (peer.dial && peer.dial->conn == conn) {
    conns_.erase(found);
    shared_.network.close(conn, id_);
    again(id, peer);
  }
}

}  // namespace monarch::sim
