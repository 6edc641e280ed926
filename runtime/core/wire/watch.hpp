// What a process knows of another one from their link alone: whether there is one, since when
// nothing has come over it, and whether the other one has been declared dead. Without I/O or clock.
//
// Who is declared dead is fenced: no link to it is made any more, whatever it asks for.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/clock.hpp"

namespace monarch::wire {

struct Pace {
  base::Duration beat = std::chrono::milliseconds(500);
  int misses = 4;  // beats without a sign of life after which a peer is told as silent

  [[nodiscard]] base::Duration patience() const noexcept { return misses * beat; }
  // How long a connection that broke has to be made again.
  [[nodiscard]] base::Duration break_limit() const noexcept {
    return std::max<base::Duration>(beat, std::chrono::milliseconds(250));
  }
};

// What is done with a peer that has dialled and proven who it is.
enum class Meeting {
  kTake,       // its connection becomes the link
  kGoOn,       // the session goes on over it
  kBegin,      // the session begins again: the peer never knew that it had begun
  kDuplicate,  // another connection stands; where it does not last, the peer tries again
  kGone,       // there is nothing to go on with, or the peer is fenced
};

class Watch {
 public:
  enum class State { kNone, kUp, kBroken, kLeft, kFenced };

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] bool fenced() const noexcept { return state_ == State::kFenced; }
  [[nodiscard]] bool broken() const noexcept { return state_ == State::kBroken; }
  // It had a link and has none: nothing is sent to it.
  [[nodiscard]] bool left() const noexcept { return state_ == State::kLeft; }
  [[nodiscard]] bool ever_joined() const noexcept { return joined_; }
  // It has been told as silent, and nothing came since.
  [[nodiscard]] bool silent() const noexcept { return silent_; }

  // A link was made. Not of who is fenced.
  void join(base::Instant now) noexcept;
  // Something came. Whether the peer had been told as silent.
  [[nodiscard]] bool heard(base::Instant now) noexcept;
  // The connection of the session has ended.
  void break_off(base::Instant now) noexcept;
  // The session has another connection. Whether the peer had been told as silent.
  [[nodiscard]] bool resume(base::Instant now) noexcept;
  // The link has ended for good.
  void leave() noexcept;
  // It has been declared dead: final.
  void fence() noexcept { state_ = State::kFenced; }

  // `going_on`: what the peer asks for. `dialling`: this process dials it at the same time;
  // `stands`: its own dial is the one of both that stands. `untouched`: of the session there is.
  [[nodiscard]] Meeting meet(bool going_on, bool dialling, bool stands,
                             bool untouched) const noexcept;

  struct Due {
    bool ping = false;
    std::optional<base::Duration> silent = {};  // for how long; told once
    bool over = false;  // its connection broke, and no other one came
  };
  [[nodiscard]] Due look(base::Instant now, const Pace& pace) noexcept;
  // When a broken one is over.
  [[nodiscard]] std::optional<base::Instant> ends(const Pace& pace) const noexcept;
  // This process did not run for a while, and may not have read what came.
  void excuse(base::Instant now, base::Duration away) noexcept {
    heard_ = std::min(heard_ + away, now);
  }

 private:
  State state_ = State::kNone;
  bool joined_ = false;
  bool pinged_ = false;
  bool silent_ = false;
  base::Instant heard_{};
  base::Instant broken_{};
};

// When a process looks at its peers.
class Rhythm {
 public:
  // Whether it is time to; then for how long this process did not run when it should have looked.
  [[nodiscard]] std::optional<base::Duration> due(base::Instant now) const noexcept;
  // It has looked, and does so again after a beat.
  void again(base::Instant now, base::Duration beat) noexcept;
  void sooner(base::Instant at) noexcept { next_ = std::min(next_, at); }
  [[nodiscard]] base::Instant next() const noexcept { return next_; }

 private:
  base::Instant next_{};
  base::Duration beat_{};
};

}  // namespace monarch::wire
