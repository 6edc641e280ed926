#include "wire/watch.hpp"

#include <utility>

namespace monarch::wire {

void Watch::join(base::Instant now) noexcept {
  state_ = State::kUp;
  joined_ = true;
  heard_ = now;
  pinged_ = silent_ = false;
}

bool Watch::heard(base::Instant now) noexcept {
  heard_ = now;
  pinged_ = false;
  return std::exchange(silent_, false);
}

void Watch::break_off(base::Instant now) noexcept {
  state_ = State::kBroken;
  broken_ = now;
}

bool Watch::resume(base::Instant now) noexcept {
  state_ = State::kUp;
  return heard(now);
}

void Watch::leave() noexcept {
  if (!fenced()) state_ = State::kLeft;
}

Meeting Watch::meet(bool going_on, bool dialling, bool stands, bool untouched) const noexcept {
  if (fenced()) return Meeting::kGone;
  const bool linked = state_ == State::kUp || state_ == State::kBroken;
  if (going_on) {
    // Where the dial of this process has not heard that it was taken, the peer is to wait for it.
    if (!linked) return dialling ? Meeting::kDuplicate : Meeting::kGone;
    return dialling && stands ? Meeting::kDuplicate : Meeting::kGoOn;
  }
  if (broken() && untouched) return Meeting::kBegin;
  return linked || (dialling && stands) ? Meeting::kDuplicate : Meeting::kTake;
}

Watch::Due Watch::look(base::Instant now, const Pace& pace) noexcept {
  Due due;
  if (state_ == State::kBroken) {
    due.over = now - broken_ >= pace.break_limit();
  } else if (state_ == State::kUp) {
    const base::Duration silent = now - heard_;
    if (silent >= pace.beat) due.ping = !std::exchange(pinged_, true);
    if (silent >= pace.patience() && !std::exchange(silent_, true)) due.silent = silent;
  }
  return due;
}

std::optional<base::Instant> Watch::ends(const Pace& pace) const noexcept {
  if (state_ != State::kBroken) return std::nullopt;
  return broken_ + pace.break_limit();
}

std::optional<base::Duration> Rhythm::due(base::Instant now) const noexcept {
  if (now < next_) return std::nullopt;
  const bool looked = beat_ != base::Duration::zero();
  return looked && now - next_ > beat_ ? now - next_ : base::Duration::zero();
}

void Rhythm::again(base::Instant now, base::Duration beat) noexcept {
  next_ = now + beat;
  beat_ = beat;
}

}  // namespace monarch::wire
