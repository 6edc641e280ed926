#include "wire/session.hpp"

#include <string>

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

}  // namespace monarch::wire
