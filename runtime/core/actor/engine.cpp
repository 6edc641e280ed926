#include "actor/engine.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "base/condition.hpp"

namespace monarch::actor {

namespace {

// Each segment holds a descriptor, of which the user's program gets most.
std::size_t most_segments(const Limits& limits) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return limits.segments;
  return std::min<std::size_t>(limits.segments, static_cast<std::size_t>(limit.rlim_cur / 8));
}

}  // namespace

Engine::Engine(std::uint64_t proc, Limits limits)
    : proc_(proc),
      limits_(limits),
      pace_{.beat = limits.heartbeat, .misses = limits.misses},
      spin_(net::allowed_cores()),
      arena_({.most_segments = most_segments(limits)}),
      returns_(std::make_shared<Returns>()),
      mappings_([returns = returns_](net::PeerId peer, net::SegmentId id) {
        const std::lock_guard lock(returns->mutex);
        returns->segments.emplace_back(peer, id);
        if (!returns->any.exchange(true) && returns->poller != nullptr) returns->poller->wake();
      }) {
  returns_->poller = &poller_;
  peer_of(proc_);
  thread_ = std::thread([this] { caretaker(); });
}

Engine::~Engine() {
  stop();
  {
    const std::lock_guard lock(returns_->mutex);
    returns_->poller = nullptr;
  }
  for (const auto& worker : workers_) {
    for (const int fd : {worker->signal_read, worker->signal_write}) {
      if (fd >= 0) ::close(fd);
    }
  }
}

void Engine::stop() {
  const std::lock_guard ending(ending_);
  {
    const Lock lock(mutex_);
    halt();
  }
  if (thread_.joinable()) thread_.join();
  const Lock lock(mutex_);
  for (const auto& [id, peer] : peers_) drop_links(*peer);
}

// Ends every wait.
void Engine::halt() {
  if (stopping_) return;
  flush_all();
  stopping_ = true;
  for (const auto* list : {&followers_, &idle_}) {
    for (Waiter* waiter : *list) waiter->condition.notify_all();
  }
  for (const auto& worker : workers_) wake_worker(*worker);
  events_condition_.notify_all();
  caretaker_condition_.notify_all();
  poller_.wake();
}

Peer& Engine::peer_of(std::uint64_t id) {
  auto& slot = peers_[id];
  if (slot == nullptr) {
    slot = std::make_unique<Peer>();
    slot->id = id;
  }
  return *slot;
}

void Engine::push_event(Event event) {
  events_out_.push_back(std::move(event));
  events_condition_.notify_one();
}

std::optional<std::uint64_t> Engine::token_of(int fd) const {
  for (const auto& [token, watched] : watched_) {
    if (watched.fd == fd) return token;
  }
  return std::nullopt;
}

base::Result<void> Engine::watch(int fd, std::uint64_t token) {
  const Lock lock(mutex_);
  if (const auto known = token_of(fd)) {
    watched_[*known].token = token;
    poller_.set_interest(fd, *known, true, false);
    return {};
  }
  const std::uint64_t own = next_token_++;
  if (auto added = poller_.add(fd, own); !added) return added;
  watched_[own] = {.fd = fd, .token = token};
  return {};
}

void Engine::unwatch(int fd) {
  const Lock lock(mutex_);
  if (const auto known = token_of(fd)) {
    poller_.remove(fd);
    watched_.erase(*known);
  }
}

std::optional<Event> Engine::control() {
  Lock lock(mutex_);
  while (!stopping_ && events_out_.empty()) base::wait(events_condition_, lock);
  if (events_out_.empty()) return std::nullopt;
  Event event = std::move(events_out_.front());
  events_out_.pop_front();
  return event;
}

Worker& Engine::add_worker() {
  workers_.push_back(
      std::make_unique<Worker>(static_cast<std::uint32_t>(workers_.size()), /*foreign=*/false));
  return *workers_.back();
}

Worker& Engine::main_worker() {
  const Lock lock(mutex_);
  if (main_ == nullptr) main_ = &add_worker();
  return *main_;
}

Worker& Engine::foreign_worker() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  for (const int fd : ends) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  const Lock lock(mutex_);
  workers_.push_back(
      std::make_unique<Worker>(static_cast<std::uint32_t>(workers_.size()), /*foreign=*/true));
  has_foreign_ = true;
  Worker& worker = *workers_.back();
  worker.signal_read = ends[0];
  worker.signal_write = ends[1];
  return worker;
}

base::Result<void> Engine::attach(Worker& worker, int fd) {
  const Lock lock(mutex_);
  const std::uint64_t token = next_token_++;
  if (auto added = poller_.add(fd, token); !added) return added;
  watched_[token] = {.fd = fd, .worker = &worker};
  worker.attached = fd;
  return {};
}

// Where a new actor lives. Actors keep their thread, since libraries keep state per thread; they
// share one only when there are many, and move off it when it is stuck in another's endpoint.
Worker& Engine::home_for(std::uint16_t flags) {
  const bool loop = (flags & k_loop) != 0;
  if (main_ != nullptr && main_->actors == 0 && (loop || !main_->is_loop)) {
    main_->is_loop = loop;
    return *main_;
  }
  Worker* least = nullptr;
  std::uint32_t count = 0;
  for (const auto& worker : workers_) {
    if (worker->is_foreign || worker->is_loop != loop) continue;
    ++count;
    if (least == nullptr || worker->actors < least->actors) least = worker.get();
  }
  const std::uint32_t most = loop ? limits_.loops : limits_.workers;
  if (least != nullptr && (least->actors == 0 || count >= most)) return *least;
  Worker& made = add_worker();
  made.is_loop = loop;
  push_event({.kind = Event::Kind::kWorker, .worker = &made});
  return made;
}

Token Engine::set_state(std::uint64_t actor, Token state) {
  const Lock lock(mutex_);
  const auto found = mailboxes_.find(actor);
  if (found == mailboxes_.end()) return state;
  return std::exchange(found->second->state, state);
}

Token Engine::close_actor(std::uint64_t actor, std::uint8_t status, std::string payload) {
  const Lock lock(mutex_);
  const auto found = mailboxes_.find(actor);
  if (found == mailboxes_.end() || found->second->closed) return nullptr;
  Mailbox& mailbox = *found->second;
  mailbox.closed = true;
  mailbox.closed_status = status;
  mailbox.closed_payload = std::make_shared<const std::string>(std::move(payload));
  const base::Bytes bytes = std::as_bytes(std::span(*mailbox.closed_payload));
  while (!mailbox.queue.empty()) {
    const std::shared_ptr<Request> request = mailbox.queue.pop();
    refuse(*request, status, bytes);
  }
  if (mailbox.home != nullptr) {
    --mailbox.home->actors;
    mailbox.home->ready.remove_if([&](Mailbox* other) { return other == &mailbox; });
    mailbox.home->beside.remove_if([&](const auto& waits) {
      if (waits->mailbox != &mailbox) return false;
      refuse(*waits, status, bytes);
      return true;
    });
    mailbox.ready = false;
  }
  flush_all();
  const Token state = std::exchange(mailbox.state, nullptr);
  if (!mailbox.busy && mailbox.running.empty()) bury(mailbox);
  return state;
}

// Nothing of a closed actor is being handled any more.
void Engine::bury(Mailbox& mailbox) {
  const std::uint64_t actor = mailbox.actor;
  graves_[actor] = {mailbox.closed_status, mailbox.closed_payload};
  buried_.push_back(actor);
  if (buried_.size() > k_graves) {
    graves_.erase(buried_.front());
    buried_.pop_front();
  }
  // One that is made again under this id starts with no credit owed.
  for (const auto& [id, peer] : peers_) {
    const auto owed = peer->owed.find(actor);
    if (owed == peer->owed.end()) continue;
    if (peer->link != nullptr) give_back_credit(*peer, actor, owed->second);
    peer->owed.erase(owed);
  }
  mailboxes_.erase(actor);
}

}  // namespace monarch::actor
