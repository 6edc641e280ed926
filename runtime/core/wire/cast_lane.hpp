// One sender and one receiver, and the two ways between them: directly, and by the tree of relays.
//
// The sender numbers its casts. With each one a receiver is told what comes before it: the cast
// before, and how many direct messages. In front of a direct message that follows a cast there is a
// barrier on the direct way, unless the cast is known to be there. So the receiver can put both ways
// together again, and what comes twice is known by its number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/fifo.hpp"
#include "wire/cast.hpp"

namespace monarch::wire {

// At the sender, for one receiving process.
class SendLane {
 public:
  // The number of the cast that a barrier has to name in front of what goes directly now, 0 for no
  // barrier.
  [[nodiscard]] std::uint64_t barrier() noexcept {
    if (last_ <= std::max(barrier_, there_)) return 0;
    return barrier_ = last_;
  }
  // A message went directly, of those that the receiver counts.
  void passed() noexcept { ++direct_; }
  // A cast goes by the tree: what the receiver is told comes before it.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> cast(std::uint64_t number) noexcept {
    return {std::exchange(last_, number), direct_};
  }
  // A cast is known to be there, and so all before it.
  void there(std::uint64_t number) noexcept { there_ = std::max(there_, number); }

 private:
  std::uint64_t direct_ = 0;
  std::uint64_t last_ = 0;     // cast
  std::uint64_t barrier_ = 0;  // the last that was named
  std::uint64_t there_ = 0;
};

// At the receiver, for one sending process. `Item` is a message, `Reply` an answer.
template <typename Item, typename Reply>
class ReceiveLane {
 public:
  // What may be handled now, in order.
  using Out = std::vector<Item>;

  // Whether the next direct message may be handled at once, without direct().
  [[nodiscard]] bool open() const noexcept { return held_.empty() && early_.empty(); }
  void passed() noexcept { ++taken_; }

  void direct(Item item, bool counted, Out& out) {
    held_.push({std::move(item), 0, counted});
    pump(out);
  }

  void barrier(std::uint64_t number, Out& out) {
    held_.push({std::nullopt, number, false});
    pump(out);
  }

  struct Again {
    std::optional<Reply> reply;  // to be sent once more, directly
    // There was an answer, and it is not kept any more: unless it went directly, before this came,
    // nobody will have it.
    bool forgotten = false;
    // The relay that brought it and is owed an answer which it will not get; 0 for none.
    std::uint64_t relieve = 0;
  };
  // A cast has come, by the relay `via` or, with 0, directly. None where it is the first time; what
  // comes a second time is dropped, and where it comes directly its answer goes directly.
  std::optional<Again> cast(const Deliver& cast, bool answers, std::uint64_t via, Item item,
                            Out& out) {
    given_ -= std::erase_if(
        log_, [&](const auto& one) { return one.first <= cast.stable && one.second.reply; });
    const bool waits = std::ranges::any_of(
        early_, [&](const auto& one) { return one.second.number == cast.number; });
    if (cast.number <= last_ || waits || early_.contains(cast.previous)) {
      Again again;
      if (answers) again.relieve = via;
      const auto known = log_.find(cast.number);
      if (via == 0 && known == log_.end()) {
        again.forgotten = answers;
      } else if (via == 0) {
        if (known->second.reply) {
          again.reply = std::move(known->second.reply);
          log_.erase(known);
          --given_;
        } else {
          again.relieve = std::exchange(known->second.via, 0);
        }
      }
      return again;
    }
    if (answers) log_.emplace(cast.number, Logged{via, std::nullopt});
    early_.emplace(cast.previous, Early{cast.number, cast.after, std::move(item)});
    pump(out);
    return std::nullopt;
  }

  // The answer to a cast is there: the relay it goes to, 0 for directly. What goes to a relay is
  // kept until it is stable: `reply()` makes it.
  template <typename Make>
  [[nodiscard]] std::uint64_t answer(std::uint64_t number, Make reply) {
    const auto known = log_.find(number);
    if (known == log_.end() || known->second.reply) return 0;
    const std::uint64_t via = known->second.via;
    if (via == 0) {
      log_.erase(known);
    } else {
      known->second.reply.emplace(reply());
      if (++given_ > k_most_kept) forget_oldest();
    }
    return via;
  }
  // As answer() where none goes by the relay: it is too large, or the call was cancelled.
  [[nodiscard]] std::uint64_t no_answer(std::uint64_t number) {
    const auto known = log_.find(number);
    if (known == log_.end() || known->second.reply) return 0;
    const std::uint64_t via = known->second.via;
    log_.erase(known);
    return via;
  }

  // Nothing is kept of the past: the link to the sender has ended.
  void clear() {
    held_.clear();
    early_.clear();
    log_.clear();
    given_ = 0;
    taken_ = last_ = 0;
  }

  [[nodiscard]] std::size_t kept() const noexcept { return given_; }
  [[nodiscard]] std::size_t waiting() const noexcept { return held_.size() + early_.size(); }

 private:
  struct Held {
    std::optional<Item> item;
    std::uint64_t barrier;
    bool counted;
  };
  struct Early {
    std::uint64_t number;
    std::uint64_t after;
    Item item;
  };
  struct Logged {
    std::uint64_t via;
    std::optional<Reply> reply;
  };

  void forget_oldest() {
    const auto oldest =
        std::ranges::find_if(log_, [](const auto& one) { return one.second.reply.has_value(); });
    log_.erase(oldest);
    --given_;
  }

  void pump(Out& out) {
    while (true) {
      if (const auto next = early_.find(last_); next != early_.end() && next->second.after <= taken_) {
        last_ = next->second.number;
        out.push_back(std::move(next->second.item));
        early_.erase(next);
      } else if (!held_.empty() && held_.front().barrier <= last_) {
        Held held = held_.pop();
        taken_ += held.counted ? 1 : 0;
        if (held.item) out.push_back(std::move(*held.item));
      } else {
        return;
      }
    }
  }

  // Where a sender settles nothing for long, say while one of its calls runs for ever.
  static constexpr std::size_t k_most_kept = 1024;

  std::uint64_t taken_ = 0;  // direct messages that are counted
  std::uint64_t last_ = 0;   // cast
  base::Fifo<Held> held_;    // behind a barrier
  std::map<std::uint64_t, Early> early_;   // casts, by the one before
  std::map<std::uint64_t, Logged> log_;    // by number
  std::size_t given_ = 0;                  // of them, with their reply
};

}  // namespace monarch::wire
