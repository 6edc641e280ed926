// What all processes of a simulated cluster have: messages with numbers, calls, control messages.
#include <algorithm>
#include <array>
#include <vector>

#include "sim/cluster.hpp"

namespace monarch::sim {
namespace {

using base::Bytes;
using wire::Kind;

constexpr std::array<std::byte, 128U << 10> kFiller{};

}  // namespace

Talker::Talker(Cluster& cluster, Id id, Host host)
    : Node(cluster.shared(), id, host), cluster_(cluster) {}

void Talker::tell(Id peer, Word word, std::span<const std::uint64_t> body) {
  std::vector<std::byte> message(8 * (body.size() + 1));
  base::store_little(base::MutableBytes(message), static_cast<std::uint64_t>(word));
  for (std::size_t i = 0; i < body.size(); ++i) {
    base::store_little(base::MutableBytes(message).subspan(8 * (i + 1)), body[i]);
  }
  const Bytes part(message);
  send(peer, Kind::kControl, {&part, 1});
}

std::uint64_t Talker::number(Id peer) {
  const std::uint64_t number = sent_[peer]++;
  shared_.note(What::kSent, id(), peer, number);
  return number;
}

void Talker::open_call(std::uint64_t inbox, Id peer) {
  shared_.note(What::kCalled, id(), peer, inbox);
  calls_.emplace(inbox, peer);
}

void Talker::answered(std::uint64_t inbox, Id peer) {
  if (calls_.erase(inbox) != 0) shared_.note(What::kAnswered, id(), peer, inbox);
}

void Talker::message(Id peer, std::uint64_t inbox, std::size_t size) {
  before_message(peer);
  const std::uint64_t number = this->number(peer);
  std::array<std::byte, wire::k_call_head> head;
  wire::write_call({.actor = peer, .sender = id(), .inbox = inbox}, head);
  std::array<std::byte, 8> text{};
  base::store_little(base::MutableBytes(text), number);
  const std::array<Bytes, 3> parts{head, text, Bytes(kFiller).first(std::min(size, kFiller.size()))};
  send(peer, Kind::kCall, parts);
}

void Talker::say(Id peer, std::size_t size) {
  if (!fenced(peer)) message(peer, 0, size);
}

void Talker::call(Id peer, std::size_t size) {
  const std::uint64_t inbox = next_inbox_++;
  shared_.note(What::kCalled, id(), peer, inbox);
  if (fenced(peer)) {
    shared_.note(What::kFailed, id(), peer, inbox);
    return;
  }
  calls_.emplace(inbox, peer);
  message(peer, inbox, size);
}

void Talker::bury(Id peer) {
  fail(peer);
  if (bent(Bend::kKeepCalls)) return;
  std::erase_if(calls_, [&](const auto& open) {
    if (open.second == peer) shared_.note(What::kFailed, id(), peer, open.first);
    return open.second == peer;
  });
}

void Talker::arrived(Id peer, std::uint64_t inbox, std::uint64_t number) {
  handle(peer, inbox, number);
}

void Talker::handle(Id peer, std::uint64_t inbox, std::uint64_t number) {
  shared_.note(What::kHandled, id(), peer, number);
  if (inbox != 0 && !(bent(Bend::kDropReply) && cluster_.random().chance(1))) {
    std::array<std::byte, wire::k_reply_head> head;
    wire::write_reply({.inbox = inbox}, head);
    const std::size_t size = std::min(cluster_.some_size(), kFiller.size());
    const std::array<Bytes, 2> parts{head, Bytes(kFiller).first(size)};
    send(peer, Kind::kReply, parts);
  }
  handled(peer);
}

void Talker::take(Id peer, Kind kind, Bytes message) {
  if (kind == Kind::kCall) {
    const auto call = wire::read_call(message);
    arrived(peer, call->inbox, base::load_little<std::uint64_t>(message));
  } else if (kind == Kind::kReply) {
    const auto reply = wire::read_reply(message);
    answered(reply->inbox, peer);
  } else if (kind == Kind::kControl) {
    std::vector<std::uint64_t> body(message.size() / 8);
    for (std::size_t i = 0; i < body.size(); ++i) {
      body[i] = base::load_little<std::uint64_t>(message.subspan(8 * i));
    }
    told(peer, static_cast<Word>(body[0]), std::span(body).subspan(1));
  }
}

}  // namespace monarch::sim
