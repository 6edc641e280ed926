// Messages for whom there is nobody: they wait for a while, are refused, and given back.
#include <algorithm>
#include <string_view>
#include <utility>

#include "actor/engine.hpp"

namespace monarch::actor {
namespace {

using base::Bytes;

// How long messages wait for the one that makes their actor.
constexpr base::Duration kEarly = std::chrono::seconds(5);

Bytes no_actor() {
  static constexpr std::string_view kText = "there is no such actor";
  return std::as_bytes(std::span(kText));
}

}  // namespace

// A caller may have a handle of an actor before the one who spawned it has reached this process.
void Engine::hold(std::shared_ptr<Request> request) {
  const bool linked = std::ranges::any_of(
      peers_, [](const auto& item) { return item.second->link != nullptr; });
  if (!linked || (request->flags & (k_stop | k_supervise)) != 0) {
    refuse(*request, static_cast<std::uint8_t>(Status::kUndelivered), no_actor());
    return;
  }
  Early& early = early_[request->actor];
  if (early.requests.empty()) {
    early.since = clock_.now();
    look_by(early.since + kEarly);
  }
  early.requests.push_back(std::move(request));
}

std::optional<base::Instant> Engine::give_up(base::Instant now) {
  std::optional<base::Instant> due;
  std::erase_if(early_, [&](const auto& item) {
    const base::Instant end = item.second.since + kEarly;
    if (end > now) {
      due = due ? std::min(*due, end) : end;
      return false;
    }
    for (const auto& request : item.second.requests) {
      refuse(*request, static_cast<std::uint8_t>(Status::kUndelivered), no_actor());
    }
    return true;
  });
  return due;
}

void Engine::refuse(const Request& request, std::uint8_t status, Bytes payload) {
  if (request.inbox != 0) {
    answer(request, status, payload, {}, nullptr);
  } else {
    give_back(proc_,
              {.actor = request.actor,
               .sender = request.sender,
               .flags = request.flags,
               .endpoint = request.endpoint},
              request.sender_proc, status);
  }
  if (request.cost != 0) give_credit(request.sender_proc, request.actor, request.cost);
}

// Nobody hears by a reply that it was not delivered. Of a death in which it was lost the owner of
// what died is told; an actor that sent it is told in any case.
void Engine::give_back(std::uint64_t proc, const wire::Call& call, std::uint64_t sender_proc,
                       std::uint8_t status) {
  if ((call.flags & (k_create | k_stop | k_supervise)) != 0 || call.inbox != 0) return;
  if ((call.flags & k_port) == 0 && call.endpoint.empty()) return;
  if (call.sender == 0 && status != static_cast<std::uint8_t>(Status::kUndelivered)) return;
  Event event{.kind = Event::Kind::kReturned, .peer = proc};
  event.status = status;
  event.request = std::make_shared<Request>();
  event.request->actor = call.actor;
  event.request->sender_proc = sender_proc;
  event.request->sender = call.sender;
  event.request->flags = call.flags;
  event.request->endpoint = call.endpoint;
  push_event(std::move(event));
}

}  // namespace monarch::actor
