// The engine's own thread: its timers, workers that are stuck, and the lead where nobody polls.
#include <signal.h>

#include <algorithm>

#include "actor/engine.hpp"

namespace monarch::actor {
namespace {

constexpr base::Duration kBlocked = std::chrono::milliseconds(2);  // waits for an answer
// Between two looks at whether somebody polls: where a thread stayed away for longer lately, or the
// program may, and where all of them have come back at once.
constexpr base::Duration kLookAtSlow = std::chrono::milliseconds(4);
constexpr base::Duration kLookAtQuick = std::chrono::milliseconds(64);
constexpr base::Duration kLately = std::chrono::seconds(1);
constexpr base::Duration kQuiet = std::chrono::milliseconds(16);  // in one poll: it looks no more
constexpr std::uint64_t kFewPolls = 100;  // between two of its looks: heartbeats, and no traffic
constexpr std::size_t kMostWorkers = 4096;

}  // namespace

// Actors that share a worker which is stuck in the endpoint of another move to one that is free.
// Python runs one thread at a time, so that one of many may only be waiting for its turn: the more
// of them work, the longer it takes to look stuck. Those that wait for an answer take no turn.
base::Instant Engine::relieve(base::Instant now) {
  base::Instant due = base::Instant::max();
  const std::size_t count = workers_.size();  // those added here have nothing to be relieved of
  const auto working = std::ranges::count_if(
      workers_, [](const auto& worker) { return worker->handled != nullptr && !worker->blocked; });
  turn_ = k_stuck * (1 + 2 * working);
  for (std::size_t i = 0; i < count; ++i) {
    Worker& stuck = *workers_[i];
    // Between two messages it only waits for a processor, and takes the next one itself.
    if (!stuck.is_crowded()) continue;
    const base::Instant since = stuck.busy_since + (stuck.blocked ? kBlocked : turn_);
    if (now < since) {
      due = std::min(due, since);
      continue;
    }
    const auto free = std::ranges::find_if(workers_, [](const auto& worker) {
      return worker->waiting && !worker->is_loop && !worker->is_foreign && worker->ready.empty();
    });
    Worker* helper = free != workers_.end() ? free->get() : nullptr;
    if (helper == nullptr) {
      if (workers_.size() >= kMostWorkers) {
        due = std::min(due, now + k_stuck);
        continue;
      }
      helper = &add_worker();
      push_event({.kind = Event::Kind::kWorker, .worker = helper});
    }
    while (!stuck.ready.empty()) {
      Mailbox& mailbox = *stuck.ready.pop();
      mailbox.home = helper;
      --stuck.actors;
      ++helper->actors;
      helper->ready.push(&mailbox);
    }
    helper->busy_since = now;
    wake_worker(*helper);
  }
  return due;
}

void Engine::arm_relief(const Worker& worker) {
  if (!worker.is_crowded()) return;
  if (worker.blocked) blocked_ = true;
  look_by(worker.busy_since + (worker.blocked ? kBlocked : turn_));
}

void Engine::beat(base::Instant now) {
  const auto away = rhythm_.due(now);
  if (!away) return;
  base::Duration next = pace_.beat;
  spin_.set_cores(net::allowed_cores());
  find_stuck();
  trim_segments(now);
  for (const auto& [id, peer] : peers_) {
    if (peer->link == nullptr || peer->watch.broken()) continue;
    const wire::Pace& pace = pace_of(*peer);
    next = std::min(next, pace.beat);
    peer->watch.excuse(now, *away);
    const wire::Watch::Due due = peer->watch.look(now, pace);
    if (due.ping) (void)send(*peer, wire::Kind::kPing, {}, {}, {}, {}, {});
    if (due.silent) {
      lose_casts(*peer, /*stalled=*/true);
      push_event({.kind = Event::Kind::kStalled,
                  .peer = id,
                  .seconds = std::chrono::duration<double>(*due.silent).count()});
    }
  }
  rhythm_.again(now, next);
}

base::Instant Engine::run_timers(base::Instant now) {
  beat(now);
  base::Instant due = rhythm_.next();
  if (flush_armed_ && now < flush_due_) {
    due = std::min(due, flush_due_);
  } else {
    flush_all();
  }
  if (const auto end = give_up(now)) due = std::min(due, *end);
  if (const auto end = end_broken(now)) due = std::min(due, *end);
  if (const auto end = expire_casts(now)) due = std::min(due, *end);
  due = std::min(due, relieve(now));
  // Where one waits others most often will: looking as often as that spares their waking us.
  if (std::exchange(blocked_, false)) due = std::min(due, now + kBlocked);
  return due;
}

void Engine::sweep(Lock& lock) {
  if (garbage_.empty()) return;
  auto garbage = std::exchange(garbage_, {});
  lock.unlock();
  garbage.clear();
  lock.lock();
}

void Engine::caretaker() {
  sigset_t all;
  sigfillset(&all);  // a macro elsewhere
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  Lock lock(mutex_);
  std::uint64_t seen = polls_;
  base::Instant polled = clock_.now();
  std::uint64_t delays = delays_;
  bool led = false;  // by one thread, all the time that the caretaker slept for long
  base::Duration look = k_tick;
  base::Instant slow_until = clock_.now() + kLately;
  while (!stopping_) {
    sweep(lock);
    base::Instant now = clock_.now();
    base::Instant due = run_timers(now);
    // Where threads poll by themselves it looks ever less often: a look costs all processes.
    if (std::exchange(stays_away_, false)) slow_until = now + kLately;
    look = std::min(look * 4, now < slow_until ? kLookAtSlow : kLookAtQuick);
    if (lead_ == Lead::kFree && now - freed_ >= k_tick) {
      look = k_tick;
      if (!idle_.empty()) {
        idle_.front()->condition.notify_one();
      } else {
        // Nobody waits for what it reads, unless there is an event loop that is not ours: so it
        // reads no more than once a tick and leaves the processor to those that work.
        lead_ = Lead::kCaretaker;
        const base::Instant freed = freed_;
        bool rare = false;
        do {
          const base::Instant began = now;
          caretaker_until_ = due;
          poll_once(lock, due, /*spin=*/false);
          sweep(lock);
          now = clock_.now();
          due = run_timers(now);
          rare = now - began > k_tick;
        } while (!stopping_ && wanted_ == 0 && idle_.empty() && followers_.empty() &&
                 (rare || has_foreign_ || now < casting_.relaying_until));
        stays_away_ = stays_away_ || now - freed > k_long;
        release_lead();
        if (followers_.empty() && !idle_.empty()) idle_.front()->condition.notify_one();
      }
    }
    now = clock_.now();
    if (polls_ != seen) polled = now;
    led = led && polls_ - seen <= kFewPolls;
    seen = polls_;
    const bool burst = std::exchange(delays, delays_) != delays_ || flush_armed_;
    const bool deep = lead_ == Lead::kThread && (led || now - polled >= kQuiet) && !burst;
    caretaker_deep_ = deep;
    const base::Duration pause = burst ? k_flush_delay : lead_ == Lead::kFree ? k_tick : look;
    caretaker_until_ = deep ? due : std::min(due, now + pause);
    caretaker_condition_.wait_until(lock, caretaker_until_);
    led = std::exchange(caretaker_deep_, false);
    if (deep && !led && !stopping_) {  // the lead is free: most often it is back within a tick
      look = k_tick;
      caretaker_until_ = clock_.now() + look;
      caretaker_condition_.wait_until(lock, caretaker_until_);
    }
  }
}

}  // namespace monarch::actor
