#include "wire/session.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "wire/encoder.hpp"
#include "wire/message.hpp"

namespace monarch::wire {
namespace {

constexpr std::size_t kCompactAt = 1U << 20;

}  // namespace

void SendLog::begin() { starts_.push_back(base_ + bytes_.size()); }

void SendLog::append(base::Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

base::MutableBytes SendLog::extend(std::size_t size) {
  const std::size_t start = bytes_.size();
  bytes_.resize(start + size);
  return base::MutableBytes(bytes_).subspan(start);
}

base::Bytes SendLog::next() const noexcept { return base::Bytes(bytes_).subspan(sent_); }

base::Result<void> SendLog::acknowledged(std::uint64_t frames) {
  if (frames > this->frames()) return unknown(frames);
  for (; acknowledged_ < frames; ++acknowledged_) starts_.pop_front();
  const std::uint64_t end = starts_.empty() ? base_ + bytes_.size() : starts_.front();
  front_ = static_cast<std::size_t>(end - base_);
  drop_front();
  return {};
}

base::Error SendLog::unknown(std::uint64_t frames) const {
  return {base::Code::kSequence, "frame " + std::to_string(frames) + " was acknowledged, of those " +
                                     std::to_string(acknowledged_) + " to " +
                                     std::to_string(this->frames())};
}

base::Result<void> SendLog::resume(std::uint64_t frames) {
  if (frames < acknowledged_) return unknown(frames);
  if (auto done = acknowledged(frames); !done) return done;
  sent_ = front_;
  return {};
}

void SendLog::drop_front() {
  if (front_ > sent_) sent_ = front_;  // taken from a connection that had not finished saying so
  if (front_ == bytes_.size()) {
    base_ += front_;
    front_ = sent_ = 0;
    if (bytes_.capacity() > kCompactAt) {
      std::vector<std::byte>().swap(bytes_);
    } else {
      bytes_.clear();
    }
  } else if (front_ >= kCompactAt && front_ >= held()) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(front_));
    base_ += front_;
    sent_ -= front_;
    front_ = 0;
  }
}

void Session::send(std::uint8_t kind, std::span<const base::Bytes> parts,
                   std::span<const base::Bytes> buffers) {
  const FrameShape shape = shape_of(parts, buffers);
  log_.begin();
  write_head(kind, sequence_++, shape, buffers, log_.extend(shape.head));
  std::size_t at = shape.head + shape.message;
  for (const base::Bytes part : parts) log_.append(part);
  for (const base::Bytes buffer : buffers) {
    const std::size_t padding = padding_at(at);
    log_.append(k_zeros.first(padding));
    log_.append(buffer);
    at += padding + buffer.size();
  }
}

bool Session::acknowledge(bool now) {
  if (unacknowledged_ < (now ? 1 : k_acknowledge_after)) return false;
  unacknowledged_ = 0;
  std::array<std::byte, 8> count{};
  base::store_little(base::MutableBytes(count), decoder_.expected_sequence());
  const base::Bytes message(count);
  send(static_cast<std::uint8_t>(Kind::kAcknowledged), {&message, 1}, {});
  return true;
}

base::Bytes Session::next() const noexcept {
  if (greeting_left_ > 0) return base::Bytes(greeting_).last(greeting_left_);
  return greeted_ ? base::Bytes{} : log_.next();
}

void Session::wrote(std::size_t size) noexcept {
  if (greeting_left_ > 0) {
    greeting_left_ -= size;
  } else {
    log_.wrote(size);
  }
}

base::Result<void> Session::take(base::Bytes input, const Handle& handle) {
  unacknowledged_ += input.size();
  refused_ = true;  // unless all of it is in order
  if (greeted_) {
    if (auto read = read_greeting(input); !read) return read;
  }
  while (!input.empty()) {
    auto frame = decoder_.next(input);
    if (!frame) return std::move(frame).error();
    if (!frame->has_value()) continue;
    if ((*frame)->header.kind == static_cast<std::uint8_t>(Kind::kAcknowledged)) {
      if (auto done = take_acknowledgement((*frame)->message); !done) return done;
    } else if (!handle(**frame)) {
      return base::Error{base::Code::kMalformed, "a message that says nothing of ours"};
    }
  }
  refused_ = false;
  return {};
}

// The first bytes of the peer on a resumed connection: how many frames it has taken.
base::Result<void> Session::read_greeting(base::Bytes& input) {
  const std::size_t size = std::min(heard_.size() - *greeted_, input.size());
  std::ranges::copy(input.first(size), heard_.begin() + static_cast<std::ptrdiff_t>(*greeted_));
  input = input.subspan(size);
  *greeted_ += size;
  if (*greeted_ < heard_.size()) return {};
  greeted_.reset();
  went_on_ = true;
  return log_.resume(base::load_little<std::uint64_t>(heard_));
}

base::Result<void> Session::take_acknowledgement(base::Bytes message) {
  if (message.size() != 8) {
    return base::Error{base::Code::kMalformed, "an acknowledgement of another size"};
  }
  return log_.acknowledged(base::load_little<std::uint64_t>(message));
}

bool Session::went_on() noexcept { return std::exchange(went_on_, false); }

void Session::resume() {
  reset();
  base::store_little(base::MutableBytes(greeting_), decoder_.expected_sequence());
  greeting_left_ = greeting_.size();
  greeted_ = 0;
}

void Session::begin_again() {
  reset();
  (void)log_.resume(0);
}

bool Session::untouched() const noexcept {
  return decoder_.expected_sequence() == 0 && log_.acknowledged() == 0;
}

void Session::reset() {
  // A frame that had come in part comes again.
  decoder_ = Decoder({.limit = k_default_limit, .first_sequence = decoder_.expected_sequence()});
  greeting_left_ = 0;
  greeted_.reset();
  unacknowledged_ = 0;
}

}  // namespace monarch::wire
