// Host agents and the processes of the mesh.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "sim/cluster.hpp"

namespace monarch::sim {
namespace {

using base::Bytes;
using wire::Kind;
using U64 = std::uint64_t;

constexpr U64 kByCast = U64{1} << 63;  // in the inbox of a direct answer to a cast

constexpr Duration kGrace = milliseconds(500);  // to end when who asked for it is gone
constexpr Duration kAsk = seconds(1);           // for what became of a process

}  // namespace

void Agent::told(Id peer, Word word, std::span<const U64> body) {
  if (word == Word::kLink) {
    if (!linked(body[0])) tell(body[0], Word::kStarted, {});
  } else if (word == Word::kSpawn) {
    for (const Id proc : body) {
      children_.insert(proc);
      later(cluster_.random().between(milliseconds(2), milliseconds(15)), [this, proc, peer] {
        if (!children_.contains(proc)) return;
        cluster_.start_worker(proc, *this);
        tell(peer, Word::kStarted, std::array{U64{proc}});
      });
    }
  } else if (word == Word::kEnd) {
    for (const Id proc : body) {
      if (children_.contains(proc)) cluster_.kill(proc);
    }
  }
}

void Agent::child_ended(Id proc) {
  later(cluster_.random().between(microseconds(50), milliseconds(3)), [this, proc] {
    if (children_.erase(proc) != 0) tell(cluster_.client_id(), Word::kEnded, std::array{U64{proc}});
  });
}

bool Agent::may_dial(Id peer) const { return cluster_.is_agent(peer); }

Agent::Agent(Cluster& cluster, Id id, Host host)
    : Talker(cluster, id, host),
      casts_(shared_.world, {.send = [this](Id to, Kind kind,
                                            std::span<const Bytes> parts) { send(to, kind, parts); },
                             .later = [this](Duration delay, std::function<void()> what) {
                               later(delay, std::move(what));
                             },
                             .usable = [this](Id peer) { return usable(peer); }}) {}

void Agent::take(Id peer, Kind kind, Bytes message) {
  if (!casts_.take(peer, kind, message)) Talker::take(peer, kind, message);
}

void Agent::lost(Id peer) {
  casts_.lost(peer);
  if (peer != cluster_.client_id()) return;
  // Who asked for them is gone: they end, within the grace.
  for (const Id proc : std::exchange(children_, {})) {
    later(cluster_.random().between(Duration::zero(), kGrace), [this, proc] { cluster_.kill(proc); });
  }
}

void Agent::silent(Id peer, bool is) {
  if (!is) return;
  casts_.lost(peer);
  if (peer == cluster_.client_id()) {
    give_up(peer);
  } else if (children_.contains(peer) && shared_.network.stopped(peer)) {
    tell(cluster_.client_id(), Word::kHung, std::array{U64{peer}});
    cluster_.kill(peer);
  }
}

Worker::Worker(Cluster& cluster, Id id, Host host, Id agent)
    : Talker(cluster, id, host), agent_(agent) {
  tell(agent_, Word::kStarted, std::array{U64{id}});  // the link that it has from birth
}

bool Worker::may_dial(Id peer) const { return peer != cluster_.client_id(); }

void Worker::told(Id, Word word, std::span<const U64> body) {
  if (word == Word::kMember) {
    members_[body[0]] = body[1];
    if (body[2] != 0) bury(body[2]);
  } else if (word == Word::kFence) {
    for (const Id proc : body) bury(proc);
  } else if (word == Word::kDead && body[1] != 0) {
    bury(body[0]);
  }
}

// What the client has it do leads to messages to others of the mesh.
void Worker::handled(Id from) {
  if (from != cluster_.client_id() || members_.empty()) return;
  for (U64 i = cluster_.random().below(4); i > 0; --i) {
    auto member = members_.begin();
    // With few of the others: a mesh has neighbours.
    const U64 reach = std::min<U64>(members_.size(), 6);
    std::advance(member, static_cast<std::ptrdiff_t>(
                             (id() + cluster_.random().below(reach)) % members_.size()));
    if (member->second == id()) continue;
    if (cluster_.random().chance(30)) {
      call(member->second, cluster_.some_size());
    } else {
      say(member->second, cluster_.some_size());
    }
  }
}

void Worker::take(Id peer, Kind kind, Bytes message) {
  if (kind == Kind::kBarrier) {
    std::vector<Item> out;
    lane_.barrier(*wire::read_barrier(message), out);
    release(out);
  } else if (kind == Kind::kDeliver) {
    take_delivery(peer, message);
  } else {
    Talker::take(peer, kind, message);
  }
}

void Worker::take_delivery(Id from, Bytes message) {
  const auto deliver = wire::read_deliver(message);
  const auto call = wire::read_call(message);
  const Item item{.number = cluster_.cast_numbers.at({deliver->number, id()}),
                  .cast = deliver->number,
                  .rank = call->rank,
                  .answers = call->inbox != 0};
  std::vector<Item> out;
  const U64 via = from == deliver->origin ? 0 : from;
  const auto again = lane_.cast(*deliver, item.answers, via, item, out);
  if (again && again->reply) {
    std::array<std::byte, wire::k_reply_head> head;
    wire::write_reply({.inbox = kByCast | again->reply->cast, .rank = again->reply->rank}, head);
    const Bytes part(head);
    send(deliver->origin, Kind::kReply, {&part, 1});
  }
  if (again && bent(Bend::kCastTwice)) out.push_back(item);
  release(out);
}

void Worker::arrived(Id peer, U64 inbox, U64 number) {
  if (peer != cluster_.client_id()) {
    handle(peer, inbox, number);
  } else if (lane_.open()) {
    lane_.passed();
    handle(peer, inbox, number);
  } else {
    std::vector<Item> out;
    lane_.direct({.inbox = inbox, .number = number}, /*counted=*/true, out);
    release(out);
  }
}

void Worker::release(const std::vector<Item>& items) {
  for (const Item& item : items) {
    handle(cluster_.client_id(), item.inbox, item.number);
    if (!item.answers) continue;
    later(cluster_.random().between(Duration::zero(), milliseconds(2)),
          [this, item] { answer(item); });
  }
}

// By the way that the cast came, unless it is too large for that.
void Worker::answer(const Item& item) {
  const bool large = cluster_.random().chance(10);
  const U64 via = large ? lane_.no_answer(item.cast)
                        : lane_.answer(item.cast, [&] { return item; });
  if (via != 0) {
    std::array<std::byte, wire::k_answer_head> head;
    wire::write_answer({cluster_.client_id(), item.cast, item.rank,
                        large ? wire::k_elsewhere : item.rank % 2},
                       head);
    const Bytes part(head);
    send(via, Kind::kAnswer, {&part, 1});
    if (!large) return;
  }
  std::array<std::byte, wire::k_reply_head> head;
  wire::write_reply({.inbox = kByCast | item.cast, .rank = item.rank}, head);
  const Bytes part(head);
  send(cluster_.client_id(), Kind::kReply, {&part, 1});
}

void Worker::quit() {
  later(Duration::zero(), [this] { cluster_.kill(id()); });
}

void Worker::lost(Id peer) {
  silent_.erase(peer);
  if (peer == cluster_.client_id() || peer == agent_) {
    quit();
    return;
  }
  tell(cluster_.client_id(), Word::kFate, std::array{U64{peer}});
  later(kAsk, [this, peer] { bury(peer); });
}

void Worker::silent(Id peer, bool is) {
  if (!is) {
    silent_.erase(peer);
  } else if (shared_.network.host_of(peer) != host() && silent_.insert(peer).second) {
    later(shared_.pace.patience(), [this, peer] {
      if (silent_.contains(peer)) give_up(peer);
    });
  }
}

}  // namespace monarch::sim
