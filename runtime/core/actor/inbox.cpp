// Inboxes, as those who wait for answers see them.
#include <algorithm>
#include <array>

#include "actor/engine.hpp"
#include "base/fault.hpp"

namespace monarch::actor {

std::shared_ptr<Inbox> Engine::open_inbox(bool once) {
  const Lock lock(mutex_);
  auto inbox = std::make_shared<Inbox>();
  inbox->id = next_inbox_++;
  inbox->once = once;
  inboxes_.emplace(inbox->id, inbox);
  return inbox;
}

std::optional<Arrival> Engine::arrival(const Inbox& inbox, std::size_t index) {
  const Lock lock(mutex_);
  if (base::reached(base::Boundary::kReplyTaken)) cut_links();
  if (index >= inbox.arrivals.size()) return std::nullopt;
  return inbox.arrivals[index];
}

std::optional<Arrival> Engine::take(Inbox& inbox) {
  const Lock lock(mutex_);
  if (inbox.arrivals.empty()) return std::nullopt;
  return inbox.arrivals.pop();
}

void Engine::set_fail_fast(Inbox& inbox, bool on) {
  const Lock lock(mutex_);
  inbox.fail_fast = on;
}

std::size_t Engine::arrived(const Inbox& inbox) {
  const Lock lock(mutex_);
  return inbox.arrived;
}

std::vector<std::uint32_t> Engine::missing(const Inbox& inbox) {
  const Lock lock(mutex_);
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < inbox.answered.size(); ++rank) {
    if (!inbox.answered[rank]) ranks.push_back(rank);
  }
  return ranks;
}

bool Engine::subscribe(Inbox& inbox, Worker& worker, std::size_t count, Token token) {
  const Lock lock(mutex_);
  if (inbox.has(count)) return true;
  inbox.subscriptions.push_back({&worker, count, token});
  inbox.wanted = count;
  flush_all();
  return false;
}

bool Engine::unsubscribe(Inbox& inbox, Token token) {
  const Lock lock(mutex_);
  return std::erase_if(inbox.subscriptions,
                       [token](const Subscription& s) { return s.token == token; }) != 0;
}

void Engine::cancel(Inbox& inbox) {
  const Lock lock(mutex_);
  if (inboxes_.erase(inbox.id) == 0 || inbox.targets == nullptr) return;
  casting_.origin.closed(inbox.cast);
  for (std::size_t rank = 0; rank < inbox.expected; ++rank) {
    if (inbox.answered[rank]) continue;
    const Target& target = inbox.targets->list[rank];
    target.outlet->outstanding -= std::min(target.outlet->outstanding, inbox.cost);
    const wire::Cancel cancel{.actor = target.actor, .inbox = inbox.id};
    if (target.peer->id == proc_) {
      handle_cancel(proc_, cancel);
      continue;
    }
    send_barrier(*target.peer);
    std::array<std::byte, wire::k_pair_head> head;
    wire::write_cancel(cancel, head);
    (void)send(*target.peer, wire::Kind::kCancel, head, {}, {}, {}, {});
  }
  flush_all();
}

// What still comes for it is dropped; a call goes on over there.
void Engine::close_inbox(Inbox& inbox) {
  const Lock lock(mutex_);
  inbox.closed = true;
  inbox.arrivals.clear();
  if (inbox.expected == 0) inboxes_.erase(inbox.id);
}

}  // namespace monarch::actor
