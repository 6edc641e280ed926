// What comes in: frames to requests, replies and events; and what becomes of them.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "actor/engine.hpp"
#include "base/fault.hpp"

namespace monarch::actor {
namespace {

using base::Bytes;

// The payload of a frame: what its storage holds stays there, the rest is copied out of the input.
Payload payload_of(std::optional<Payload>& attached, wire::Frame& frame, Bytes data) {
  if (attached.has_value()) return *std::exchange(attached, std::nullopt);
  if (frame.storage == nullptr) return copy_payload(data, frame.buffers);
  return {.storage = frame.storage, .data = data, .buffers = std::move(frame.buffers)};
}

std::string_view board_name(const Request& request) {
  if ((request.flags & k_create) != 0) return "__init__";
  if ((request.flags & k_stop) != 0) return "__cleanup__";
  if ((request.flags & k_supervise) != 0) return "__supervise__";
  return request.endpoint;
}

}  // namespace

bool Engine::handle_frame(Peer& peer, net::Link& link, wire::Frame& frame) {
  std::optional<Payload>& attached = peer.attached[&link == peer.link.get() ? 0 : 1];
  Bytes message = frame.message;
  switch (static_cast<wire::Kind>(frame.header.kind)) {
    case wire::Kind::kCall: {
      if (base::reached(base::Boundary::kRequestRead)) cut_links();
      auto call = wire::read_call(message);
      if (!call) return false;
      if ((call->flags & k_port) != 0) {
        const Status status = (call->flags & k_port_error) != 0 ? Status::kError : Status::kOk;
        if (!arrive(call->actor, {call->rank, static_cast<std::uint8_t>(status),
                                  payload_of(attached, frame, message)})) {
          give_back(proc_, *call, peer.id, static_cast<std::uint8_t>(Status::kUndelivered));
        }
        return true;
      }
      auto request = make_request(peer, *call, attached, frame, message);
      if (peer.in.open()) {
        peer.in.passed();
        deliver(std::move(request));
      } else {
        Lane::Out out;
        peer.in.direct({std::move(request), {}}, /*counted=*/true, out);
        release(peer, out);
      }
      return true;
    }
    case wire::Kind::kReply: {
      if (base::reached(base::Boundary::kReplyRead)) cut_links();
      auto reply = wire::read_reply(message);
      if (!reply) return false;
      arrive(reply->inbox, {reply->rank, reply->status, payload_of(attached, frame, message)});
      return true;
    }
    case wire::Kind::kControl: {
      Event event{.kind = Event::Kind::kControl, .peer = peer.id};
      event.payload = payload_of(attached, frame, message);
      push_event(std::move(event));
      return true;
    }
    case wire::Kind::kHandOver: {
      auto handed = std::make_shared<net::Descriptor>(link.take_descriptor());
      if (handed->get() < 0) return true;  // no room for it here: who dialled tries again
      Event event{.kind = Event::Kind::kHandedOver, .peer = peer.id};
      event.payload = copy_payload(message, {});
      event.handed = std::move(handed);
      push_event(std::move(event));
      return true;
    }
    case wire::Kind::kCancel: {
      auto cancel = wire::read_cancel(message);
      if (!cancel) return false;
      Lane::Out out;
      peer.in.direct({nullptr, *cancel}, /*counted=*/false, out);
      release(peer, out);
      return true;
    }
    case wire::Kind::kCredit: {
      auto credit = wire::read_credit(message);
      if (!credit) return false;
      if (const auto found = peer.outlets.find(credit->target); found != peer.outlets.end()) {
        std::size_t& outstanding = found->second->outstanding;
        outstanding -= std::min<std::size_t>(outstanding, credit->bytes);
        credit_came();
      }
      return true;
    }
    case wire::Kind::kPing:
      ++beats_;
      (void)link.acknowledge(/*now=*/true);
      (void)send(peer, wire::Kind::kPong, {}, {}, {}, {}, {});
      return true;
    case wire::Kind::kPong:
      ++beats_;
      return true;
    case wire::Kind::kCast:
    case wire::Kind::kRecast:
    case wire::Kind::kDeliver:
    case wire::Kind::kAnswer:
    case wire::Kind::kGathered:
    case wire::Kind::kDone:
    case wire::Kind::kBarrier:
      return handle_cast(peer, frame);
    default:
      return handle_payload(peer, link, frame);
  }
}

std::shared_ptr<Request> Engine::make_request(const Peer& sender, const wire::Call& call,
                                              std::optional<Payload>& attached,
                                              wire::Frame& frame, Bytes data) {
  auto request = std::make_shared<Request>();
  request->actor = call.actor;
  request->sender_proc = sender.id;
  request->sender = call.sender;
  request->reply_proc = call.reply_proc == 0 ? sender.id : call.reply_proc;
  request->inbox = call.inbox;
  request->rank = call.rank;
  request->flags = call.flags;
  request->endpoint = call.endpoint;
  request->extent = call.extent;
  request->payload = payload_of(attached, frame, data);
  // The sender takes the credit of a call back with the reply; of anything else we return it.
  const bool by_reply = call.inbox != 0 && call.reply_proc == 0;
  request->cost = by_reply ? 0 : request->payload.size() + 192;
  return request;
}

void Engine::deliver(std::shared_ptr<Request> request) {
  auto found = mailboxes_.find(request->actor);
  if ((request->flags & k_create) != 0) {
    if (found != mailboxes_.end() && !found->second->closed) {
      static constexpr std::string_view kExists = "an actor with this id exists already";
      refuse(*request, static_cast<std::uint8_t>(Status::kUndelivered),
             std::as_bytes(std::span(kExists)));
      return;
    }
    if (found == mailboxes_.end()) {
      found = mailboxes_.emplace(request->actor, std::make_unique<Mailbox>()).first;
      if (graves_.erase(request->actor) != 0) std::erase(buried_, request->actor);
    }
    // One that was closed is made again: it failed, and its owner restarts it.
    Mailbox& mailbox = *found->second;
    mailbox.actor = request->actor;
    mailbox.closed = false;
    mailbox.closed_payload = nullptr;
    mailbox.home = &home_for(request->flags);
    ++mailbox.home->actors;
  }
  if (found == mailboxes_.end()) {
    if (const auto grave = graves_.find(request->actor); grave != graves_.end()) {
      refuse(*request, grave->second.status, std::as_bytes(std::span(*grave->second.payload)));
    } else {
      hold(std::move(request));
    }
    return;
  }
  Mailbox& mailbox = *found->second;
  if (mailbox.closed) {
    refuse(*request, mailbox.closed_status, std::as_bytes(std::span(*mailbox.closed_payload)));
    return;
  }
  request->mailbox = &mailbox;
  const bool made = mailbox.queue.empty() || (mailbox.queue.front()->flags & k_create) == 0;
  if ((request->flags & k_beside) != 0 && mailbox.home->is_loop && made) {
    request->beside = true;
    mailbox.home->beside.push(std::move(request));
    wake_worker(*mailbox.home);
    return;
  }
  const bool makes = (request->flags & k_create) != 0;
  if ((request->flags & k_supervise) != 0) {
    // A failure is heard of before the messages that wait, whatever their number.
    mailbox.queue.push_before(std::move(request), [](const auto& other) {
      return (other->flags & (k_create | k_supervise)) == 0;
    });
  } else {
    mailbox.queue.push(std::move(request));
  }
  if (makes) {
    if (const auto early = early_.find(mailbox.actor); early != early_.end()) {
      for (auto& held : early->second.requests) {
        held->mailbox = &mailbox;
        mailbox.queue.push(std::move(held));
      }
      early_.erase(early);
    }
  }
  make_ready(mailbox);
}

void Engine::make_ready(Mailbox& mailbox) {
  if (mailbox.busy || mailbox.ready || mailbox.queue.empty()) return;
  mailbox.ready = true;
  Worker& home = *mailbox.home;
  home.ready.push(&mailbox);
  wake_worker(home);
  arm_relief(home);
}

bool Engine::arrive(std::uint64_t id, Arrival arrival) {
  const auto found = inboxes_.find(id);
  if (found == inboxes_.end()) return false;  // nobody waits any more
  const std::shared_ptr<Inbox> inbox = found->second;
  if (inbox->targets != nullptr) {
    if (arrival.rank >= inbox->expected || inbox->answered[arrival.rank]) return true;
    inbox->answered[arrival.rank] = true;
    Outlet& outlet = *inbox->targets->list[arrival.rank].outlet;
    outlet.outstanding -= std::min(outlet.outstanding, inbox->cost);
    if (!credit_waiters_.empty()) credit_came();
  }
  ++inbox->arrived;
  inbox->broken = inbox->broken || arrival.status != 0;
  if (!inbox->closed) inbox->arrivals.push(std::move(arrival));
  if (inbox->arrived == inbox->expected || inbox->once) {
    casting_.origin.closed(inbox->cast);
    inboxes_.erase(id);
  }
  settle(*inbox);
  return true;
}

void Engine::settle(Inbox& inbox) {
  for (Waiter* waiter : inbox.waiters) notify(*waiter);
  if (inbox.subscriptions.empty()) return;
  std::erase_if(inbox.subscriptions, [&](const Subscription& subscription) {
    if (!inbox.has(subscription.count)) return false;
    subscription.worker->tokens.push(subscription.token);
    wake_worker(*subscription.worker);
    return true;
  });
}

void Engine::handle_cancel(std::uint64_t proc, const wire::Cancel& cancel) {
  const auto meant = [&](const std::shared_ptr<Request>& request) {
    return request->inbox == cancel.inbox && request->reply_proc == proc;
  };
  const auto drop = [&](const std::shared_ptr<Request>& request) {
    if (!meant(request)) return false;
    forgo(*request);
    if (request->cost != 0) give_credit(request->sender_proc, request->actor, request->cost);
    return true;
  };
  const auto found = mailboxes_.find(cancel.actor);
  if (found == mailboxes_.end()) {
    if (const auto early = early_.find(cancel.actor); early != early_.end()) {
      std::erase_if(early->second.requests, drop);
    }
    return;
  }
  Mailbox& mailbox = *found->second;
  mailbox.queue.remove_if(drop);
  if (mailbox.queue.empty() && mailbox.ready) {
    mailbox.ready = false;
    mailbox.home->ready.remove_if([&](Mailbox* other) { return other == &mailbox; });
  }
  for (const auto& request : mailbox.running) {
    if (!meant(request) || request->replied) continue;
    request->cancelled = true;
    forgo(*request);
    Event event{.kind = Event::Kind::kCancel, .peer = proc};
    event.request = request;
    push_event(std::move(event));
  }
}

void Engine::finish(const std::shared_ptr<Request>& request) {
  const Lock lock(mutex_);
  if (std::exchange(request->finished, true)) return;
  Mailbox& mailbox = *request->mailbox;
  if (!request->beside) mailbox.busy = false;
  if (request->taken_by != nullptr && request->taken_by->handled == request.get()) {
    request->taken_by->handled = nullptr;
  }
  if (request->cost != 0) give_credit(request->sender_proc, request->actor, request->cost);
  make_ready(mailbox);
  retire(request);
}

void Engine::retire(const std::shared_ptr<Request>& request) {
  const bool answered =
      request->replied || request->inbox == 0 || (request->flags & k_explicit) != 0;
  if (!request->finished || !answered || request->mailbox == nullptr) return;
  board_.leave(std::exchange(request->line, Board::k_none));
  Mailbox& mailbox = *std::exchange(request->mailbox, nullptr);
  std::erase(mailbox.running, request);
  if (mailbox.closed && !mailbox.busy && mailbox.running.empty()) bury(mailbox);
}

std::optional<Work> Engine::pop(Worker& worker) {
  if (!worker.tokens.empty()) return Work{.kind = Work::Kind::kToken, .token = worker.tokens.pop()};
  if (!worker.beside.empty() || !worker.ready.empty()) {
    std::shared_ptr<Request> request;
    if (!worker.beside.empty()) {
      request = worker.beside.pop();
    } else {
      Mailbox& next = *worker.ready.pop();
      next.ready = false;
      next.busy = true;
      request = next.queue.pop();
    }
    Mailbox& mailbox = *request->mailbox;
    mailbox.running.push_back(request);
    if (base::reached(base::Boundary::kRequestTaken)) cut_links();
    if (board_.mapped()) {
      request->line = board_.enter(request->actor, board_name(*request), clock_.now());
    }
    return Work{.kind = Work::Kind::kRequest, .request = std::move(request), .state = mailbox.state};
  }
  if (std::exchange(worker.attached_ready, false)) {
    if (const auto token = token_of(worker.attached)) {
      poller_.set_interest(worker.attached, *token, true, false);
    }
    return Work{.kind = Work::Kind::kReadable};
  }
  return std::nullopt;
}

}  // namespace monarch::actor
