// Who polls, and who waits: the lead, and the workers' next().
#include <unistd.h>

#include <algorithm>
#include <array>

#include "actor/engine.hpp"
#include "base/condition.hpp"

namespace monarch::actor {
namespace {

// How long a thread waits before it lets signal handlers run, where the system does not wake it.
constexpr base::Duration kSlice = std::chrono::milliseconds(200);
constexpr base::Duration kSlowSpin = std::chrono::microseconds(10);

thread_local std::uint32_t worker_at = ~std::uint32_t{0};  // of the worker whose thread this is

std::optional<base::Instant> sooner(std::optional<base::Instant> a, std::optional<base::Instant> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace

void Engine::notify(Waiter& waiter) {
  if (!waiter.leads) {
    handed_ = handed_ || !polling_;
    waiter.condition.notify_one();
  } else if (polling_) {
    poller_.wake();
  }
}

void Engine::wake_worker(Worker& worker) {
  if (worker.is_foreign) {
    handed_ = handed_ || !polling_;
    const char one = 1;
    [[maybe_unused]] const auto n = ::write(worker.signal_write, &one, 1);
  } else if (worker.waiting) {
    notify(worker.waiter);
  }
}

void Engine::wake_caretaker() {
  if (lead_ != Lead::kCaretaker) {
    caretaker_condition_.notify_one();
  } else if (polling_) {
    poller_.wake();
  }
}

// A burst has the caretaker awake, and it finds what is due by itself.
void Engine::delay_flush(base::Instant now) {
  ++delays_;
  if (std::exchange(flush_armed_, true)) return;
  flush_due_ = now + k_flush_delay;
  look_by(flush_due_);
}

void Engine::look_by(base::Instant due) {
  if (caretaker_until_ > due) wake_caretaker();
}

// Waits until `ready`, leading when nobody else does. `list`: where it stands while it does not.
template <typename Ready>
Waited Engine::wait_for(Lock& lock, Waiter& waiter, std::optional<base::Instant> deadline,
                        Ready ready, std::vector<Waiter*>& list) {
  const bool is_worker = &list == &idle_;
  bool spin = true;
  bool gave_away = false;  // the lead, to the thread that was handed something
  bool slept = false;      // and may have been told to lead
  // Whoever leaves without leading tells the next one.
  const auto leave = [&](Waited how) {
    if (slept && lead_ == Lead::kFree) offer_lead();
    return how;
  };
  if (ready()) return Waited::kDone;
  ++waits_;
  flush_all();
  while (true) {
    if (ready()) return leave(Waited::kDone);
    if (stopping_) return Waited::kStopped;
    const base::Instant now = clock_.now();
    if (deadline && now >= *deadline) return leave(Waited::kTimeout);
    const auto until = is_worker ? deadline : sooner(deadline, now + kSlice);
    if (lead_ == Lead::kFree && !gave_away) {
      stays_away_ = stays_away_ || now - freed_ > k_long;
      lead_ = Lead::kThread;
      leader_ = &waiter;
      waiter.leads = true;
      net::Polled polled = net::Polled::kReady;
      do {
        handed_ = false;
        const std::uint64_t beats = beats_;
        polled = poll_once(lock, until, std::exchange(spin, false));
        // After a heartbeat nothing else is about to come.
        if (polled == net::Polled::kReady) spin = beats_ == beats;
      } while (polled != net::Polled::kSignal && !ready() && !stopping_ && !(is_worker && handed_) &&
               (!until || clock_.now() < *until));
      waiter.leads = false;
      gave_away = is_worker && handed_;
      release_lead();
      if (polled == net::Polled::kSignal) return Waited::kSignal;
      if (!is_worker && !ready() && !stopping_ && !(deadline && clock_.now() >= *deadline)) {
        return Waited::kSignal;
      }
      continue;
    }
    gave_away = false;
    const bool wants = lead_ == Lead::kCaretaker;
    if (wants) {
      ++wanted_;
      if (polling_) poller_.wake();
    }
    list.push_back(&waiter);
    const auto woken = until ? waiter.condition.wait_until(lock, *until)
                             : (base::wait(waiter.condition, lock), std::cv_status::no_timeout);
    std::erase(list, &waiter);
    if (wants) --wanted_;
    slept = true;
    if (woken == std::cv_status::timeout && !is_worker && !ready()) {
      if (deadline && clock_.now() >= *deadline) continue;
      return leave(Waited::kSignal);
    }
  }
}

void Engine::release_lead() {
  lead_ = Lead::kFree;
  leader_ = nullptr;
  freed_ = clock_.now();
  offer_lead();
}

// Nobody polls: who waits for an answer is to, or the caretaker sees to it at its next look. A worker
// with nothing to do is not woken at once, since most often the lead is back before that.
void Engine::offer_lead() {
  if (!followers_.empty()) {
    followers_.front()->condition.notify_one();
  } else if (caretaker_deep_) {
    caretaker_deep_ = false;
    caretaker_condition_.notify_one();
  }
}

net::Polled Engine::poll_once(Lock& lock, std::optional<base::Instant> deadline, bool spin) {
  flush_all();
  ++polls_;
  polling_ = true;
  const base::Instant start = clock_.now();
  const base::Duration budget = spin ? spin_.budget(start) : base::Duration::zero();
  lock.unlock();
  net::Polled polled = net::Polled::kTimeout;
  base::Instant now = start;
  if (budget > base::Duration::zero()) {
    do {
      polled = poller_.wait(events_, base::Duration::zero());
      now = clock_.now();
    } while (polled == net::Polled::kTimeout && now - start < budget);
    bool preempted = false;
    if (now - start > kSlowSpin) {
      thread_local long before = net::preemptions();
      preempted = std::exchange(before, net::preemptions()) != before;
    }
    spin_.learn(polled != net::Polled::kTimeout, preempted, now);
  }
  if (polled == net::Polled::kTimeout) {
    std::optional<base::Duration> left;
    if (deadline) left = std::max(*deadline - now, base::Duration::zero());
    polled = poller_.wait(events_, left);
  }
  lock.lock();
  polling_ = false;
  if (polled == net::Polled::kFailed) {
    push_event({.kind = Event::Kind::kWarning,
                .text = "the runtime of this process has ended, since it cannot wait for messages "
                        "any more: " + poller_.why()});
    halt();
  }
  dispatch(events_);
  return polled;
}

void Engine::dispatch(const std::vector<net::Ready>& events) {
  if (events.empty()) return;
  const base::Instant now = clock_.now();
  for (const net::Ready& event : events) {
    const auto found = watched_.find(event.token);
    if (found == watched_.end()) continue;  // gone since
    const Watched watched = found->second;
    if (watched.worker != nullptr) {
      poller_.set_interest(watched.fd, event.token, false, false);
      watched.worker->attached_ready = true;
      wake_worker(*watched.worker);
      continue;
    }
    if (watched.peer == nullptr) {
      poller_.set_interest(watched.fd, event.token, false, false);
      push_event({.kind = Event::Kind::kReadable, .peer = watched.token});
      continue;
    }
    Peer& peer = *watched.peer;
    net::Link& link = *watched.link;
    if (event.writable && watched.link == peer.link.get()) flush(peer);
    if (!event.readable) continue;
    if (peer.watch.heard(now)) come_back(peer.id);
    receive(peer, link);
  }
  flush_all();
}

Waited Engine::wait(Inbox& inbox, std::size_t count, std::optional<base::Instant> deadline) {
  thread_local Waiter waiter;
  Lock lock(mutex_);
  if (inbox.has(count)) return Waited::kDone;
  Worker* const worker = worker_of_this_thread();
  if (worker != nullptr) {
    worker->blocked = true;
    arm_relief(*worker);
  } else {
    stays_away_ = true;  // the program itself: who knows for how long
  }
  inbox.waiters.push_back(&waiter);
  inbox.wanted = count;
  const Waited waited = wait_for(
      lock, waiter, deadline, [&] { return inbox.has(count); }, followers_);
  std::erase(inbox.waiters, &waiter);
  if (worker != nullptr) worker->blocked = false;
  return waited;
}

Waited Engine::wait_space(Lock& lock, const std::function<bool()>& ready) {
  thread_local Waiter waiter;
  space_waiters_.push_back(&waiter);
  const Waited waited = wait_for(lock, waiter, std::nullopt, ready, followers_);
  std::erase(space_waiters_, &waiter);
  return waited;
}

Waited Engine::wait_credit(const Targets& targets) {
  thread_local Waiter waiter;
  Lock lock(mutex_);
  credit_waiters_.push_back(&waiter);
  const Waited waited = wait_for(
      lock, waiter, std::nullopt, [&] { return has_credit_locked(targets); }, followers_);
  std::erase(credit_waiters_, &waiter);
  return waited;
}

std::optional<Work> Engine::next_ready(Worker& worker) {
  const Lock lock(mutex_);
  worker.stopped = stopping_;
  if (worker.is_foreign) {
    std::array<char, 256> drained;
    while (::read(worker.signal_read, drained.data(), drained.size()) > 0) {
    }
  }
  return take_work(worker);
}

std::optional<Work> Engine::take_work(Worker& worker) {
  std::optional<Work> work = pop(worker);
  worker.busy_since = clock_.now();
  worker.handled = work ? work->request.get() : nullptr;
  if (worker.handled != nullptr) work->request->taken_by = &worker;
  arm_relief(worker);
  return work;
}

std::optional<Work> Engine::next(Worker& worker, std::optional<base::Instant> deadline,
                                 Waited& ended) {
  Lock lock(mutex_);
  worker.thread = std::this_thread::get_id();
  worker_at = worker.index;
  worker.waiting = true;
  ended = wait_for(lock, worker.waiter, deadline, [&] { return worker.has_work(); }, idle_);
  worker.waiting = false;
  worker.stopped = stopping_;
  if (ended != Waited::kDone) return std::nullopt;
  return take_work(worker);
}

Worker* Engine::worker_of_this_thread() {
  if (worker_at >= workers_.size()) return nullptr;
  Worker& worker = *workers_[worker_at];
  return worker.thread == std::this_thread::get_id() ? &worker : nullptr;
}

}  // namespace monarch::actor
