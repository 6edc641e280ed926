// What actors are busy with: endpoints being handled, and calls that hold their actor up.
#include <algorithm>
#include <ranges>

#include "actor/engine.hpp"

namespace monarch::actor {

namespace {

constexpr std::uint32_t kBeatsToStuck = 2;
constexpr std::size_t kMostInboxes = 4096;  // with more, looking through them would take too long

bool is_call(const Request& request, std::uint64_t proc, std::uint64_t inbox) {
  return request.reply_proc == proc && request.inbox == inbox;
}

Awaited awaited_at(const Inbox& inbox) {
  Awaited found;
  found.inbox = inbox.id;
  found.by_thread = !inbox.waiters.empty();
  for (const Subscription& one : inbox.subscriptions) found.tokens.push_back(one.token);
  if (inbox.targets == nullptr || inbox.wanted < inbox.expected) return found;
  const auto& targets = inbox.targets->list;
  for (std::size_t rank = targets.size(); rank-- > 0;) {
    if (inbox.answered[rank]) continue;
    found.rank = static_cast<std::uint32_t>(rank);
    found.missing.emplace_back(targets[rank].peer->id, targets[rank].actor);
  }
  std::ranges::reverse(found.missing);
  return found;
}

}  // namespace

std::vector<std::string> Engine::running(std::uint64_t actor) {
  const Lock lock(mutex_);
  std::vector<std::string> names;
  if (const auto found = mailboxes_.find(actor); found != mailboxes_.end()) {
    for (const auto& request : found->second->running) names.push_back(request->endpoint);
  }
  return names;
}

std::optional<Blocked> Engine::blocked(std::uint64_t actor, std::uint64_t proc,
                                       std::uint64_t inbox) {
  const Lock lock(mutex_);
  const auto at = mailboxes_.find(actor);
  if (at == mailboxes_.end() || !at->second->busy) return std::nullopt;
  Mailbox& mailbox = *at->second;
  const auto holder = std::ranges::find_if(
      mailbox.running, [](const auto& request) { return !request->finished; });
  if (holder == mailbox.running.end()) return std::nullopt;
  Blocked found;
  found.running = (*holder)->endpoint;
  if (inbox != 0) {
    const Request* call = is_call(**holder, proc, inbox) ? holder->get() : nullptr;
    for (std::size_t i = 0; call == nullptr && i < mailbox.queue.size(); ++i) {
      if (is_call(*mailbox.queue[i], proc, inbox)) call = mailbox.queue[i].get();
    }
    if (call == nullptr) return std::nullopt;
    found.called = call->endpoint;
  }
  for (const auto& [id, each] : inboxes_) {
    if (each->sender == actor && each->awaited()) found.awaited.push_back(awaited_at(*each));
  }
  if (found.awaited.empty()) return std::nullopt;
  return found;
}

void Engine::find_stuck() {
  if (workers_.empty() || inboxes_.size() > kMostInboxes) return;
  for (const auto& [id, inbox] : inboxes_) {
    if (inbox->sender == 0 || inbox->targets == nullptr) continue;
    inbox->beats = inbox->awaited() ? inbox->beats + 1 : 0;
    if (inbox->beats > kBeatsToStuck && inbox->beats % kBeatsToStuck == 1) {
      push_event({.kind = Event::Kind::kStuck, .peer = inbox->sender});
    }
  }
}

void Engine::keep_board(int fd, std::size_t page) {
  const Lock lock(mutex_);
  board_ = Board(fd, page);
}

}  // namespace monarch::actor
