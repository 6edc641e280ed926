// Casts, as a receiver: what was delivered in its order, and answers by the way it came.
#include <array>
#include <string_view>
#include <utility>

#include "actor/casting.hpp"
#include "actor/engine.hpp"

namespace monarch::actor {
namespace {

using base::Bytes;

Bytes bytes_of(std::string_view text) noexcept { return std::as_bytes(std::span(text)); }

}  // namespace

bool Engine::take_delivery(Peer& peer, wire::Frame& frame) {
  Bytes message = frame.message;
  const auto deliver = wire::read_deliver(message);
  if (!deliver || deliver->origin == proc_) return false;
  auto call = wire::read_call(message);
  if (!call || (call->flags & k_port) != 0) return false;
  Peer& origin = peer_of(deliver->origin);
  if (origin.was_lost || origin.failure != nullptr) return true;  // it is shut out
  const bool answers = call->inbox != 0 && call->reply_proc == 0;
  std::optional<Payload> none;
  auto request = make_request(origin, *call, none, frame, message);
  request->cast = answers ? deliver->number : 0;
  request->told = origin.told;
  const auto [inbox, rank] = std::pair(request->inbox, request->rank);
  Lane::Out out;
  auto again = origin.in.cast(*deliver, answers, peer.id == origin.id ? 0 : peer.id,
                              {std::move(request), {}}, out);
  if (again && again->relieve != 0) {
    send_answer(again->relieve, {origin.id, deliver->number, rank, wire::k_elsewhere}, {});
  }
  if (again && again->reply) {
    const Given& given = *again->reply;
    send_reply(origin.id, {given.inbox, given.rank, given.status}, bytes_of(given.payload), {},
               nullptr);
  } else if (again && again->forgotten) {
    // Where it went directly, that comes first.
    send_reply(origin.id, {inbox, rank, static_cast<std::uint8_t>(Status::kFailed)}, {}, {},
               nullptr);
  }
  release(origin, out);
  return true;
}

void Engine::release(Peer& peer, Lane::Out& out) {
  for (Ordered& one : out) {
    if (one.request != nullptr) {
      deliver(std::move(one.request));
    } else {
      handle_cancel(peer.id, one.cancel);
    }
  }
}

// The reply to a request, the way that the request came.
void Engine::answer(const Request& request, std::uint8_t status, Bytes data,
                    std::span<const Bytes> buffers, base::Result<void>* outcome,
                    Shipping* shipping) {
  if (request.cast != 0) {
    Peer& origin = peer_of(request.reply_proc);
    Lane& lane = origin.in;
    const bool fits = shipping == nullptr && buffers.empty() &&
                      data.size() <= wire::k_most_answer && request.told == origin.told;
    if (!fits) {
      forgo(request);
    } else if (const std::uint64_t via = lane.answer(
                   request.cast, [&] {
                     return Given{request.inbox, request.rank, status,
                                  std::string(reinterpret_cast<const char*>(data.data()),
                                              data.size())};
                   });
               via != 0) {
      send_answer(via, {origin.id, request.cast, request.rank, status}, data);
      return;
    }
  }
  send_reply(request.reply_proc, {request.inbox, request.rank, status}, data, buffers, outcome,
             shipping);
}

// No answer to this request goes by a relay.
void Engine::forgo(const Request& request) {
  if (request.cast == 0) return;
  const std::uint64_t via = peer_of(request.reply_proc).in.no_answer(request.cast);
  if (via == 0) return;
  send_answer(via, {request.reply_proc, request.cast, request.rank, wire::k_elsewhere}, {});
}

void Engine::send_answer(std::uint64_t via, const wire::Answer& answer, Bytes data) {
  std::array<std::byte, wire::k_answer_head> head;
  wire::write_answer(answer, head);
  (void)send(peer_of(via), wire::Kind::kAnswer, head, {}, {}, data, {});
}

}  // namespace monarch::actor
