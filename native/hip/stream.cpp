#include "monarch/native/stream.hpp"

#include <utility>

#include "driver.hpp"

namespace monarch::native {
namespace {

/// Success is true, "not ready" false.
Result<bool> answer(hipError_t status, const char* context) {
  if (status == hipSuccess) {
    return true;
  }
  if (status == hipErrorNotReady) {
    return false;
  }
  return driver_error(status, context);
}

}  // namespace

Result<Stream> Stream::create(int device, int priority) {
  const Result<ContextScope> scope = ContextScope::enter(device);
  if (!scope) {
    return scope.error();
  }
  hipStream_t stream{};
  if (Status got = invoke("creating a stream", driver().value().stream_create, &stream,
                          static_cast<unsigned>(hipStreamNonBlocking), priority);
      !got) {
    return got.error();
  }
  return Stream(device, stream);
}

Stream::Stream(Stream&& other) noexcept
    : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this != &other) {
    (void)release();
    device_ = other.device_;
    handle_ = std::exchange(other.handle_, nullptr);
  }
  return *this;
}

Stream::~Stream() { (void)release(); }

Status Stream::synchronize() {
  const Result<ContextScope> scope = ContextScope::enter(device_);
  if (!scope) {
    return scope.error();
  }
  return invoke("waiting for a stream", driver().value().stream_synchronize,
                static_cast<hipStream_t>(handle_));
}

Result<bool> Stream::query() {
  const Result<ContextScope> scope = ContextScope::enter(device_);
  if (!scope) {
    return scope.error();
  }
  return answer(driver().value().stream_query(static_cast<hipStream_t>(handle_)), "asking a stream");
}

Status Stream::wait(const Event& event) {
  const Result<ContextScope> scope = ContextScope::enter(device_);
  if (!scope) {
    return scope.error();
  }
  return invoke("making a stream wait", driver().value().stream_wait_event,
                static_cast<hipStream_t>(handle_), static_cast<hipEvent_t>(event.handle()), 0U);
}

Status Stream::release() {
  void* handle = std::exchange(handle_, nullptr);
  if (handle == nullptr) {
    return {};
  }
  const Result<ContextScope> scope = ContextScope::enter(device_);
  if (!scope) {
    return scope.error();
  }
  return invoke("destroying a stream", driver().value().stream_destroy,
                static_cast<hipStream_t>(handle));
}

Result<Event> Event::create(int device, bool timing) {
  const Result<ContextScope> scope = ContextScope::enter(device);
  if (!scope) {
    return scope.error();
  }
  const auto flags = static_cast<unsigned>(timing ? hipEventDefault : hipEventDisableTiming);
  hipEvent_t event{};
  if (Status got = invoke("creating an event", driver().value().event_create, &event, flags);
      !got) {
    return got.error();
  }
  return Event(device, event);
}

Event::Event(Event&& other) noexcept
    : device_(other.device_), handle_(std::exchange(other.handle_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  if (this != &other) {
    (void)release();
    device_ = other.device_;
    handle_ = std::exchange(other.handle_, nullptr);
  }
  return *this;
}

Event::~Event() { (void)release(); }

Status Event::record(const Stream& stream) {
  const Result<ContextScope> scope = ContextScope::enter(device_);
  if (!scope) {
    return scope.error();
  }
  return invoke("recording an event", driver().value().event_record, static_cast<hipEvent_t>(handle_),
                static_cast<hipStream_t>(stream.handle()));
}

Status Event::synchronize() {
  const Result<ContextScope> scope = ContextScope::enter(device_);
  if (!scope) {
    return scope.error();
  }
  return invoke("waiting for an event", driver().value().event_synchronize,
                static_cast<hipEvent_t>(handle_));
}

Result<bool> Event::query() {
  const Result<ContextScope> scope = ContextScope::enter(device_);
  if (!scope) {
    return scope.error();
  }
  return answer(driver().value().event_query(static_cast<hipEvent_t>(handle_)), "asking an event");
}

Result<float> Event::elapsed_since(const Event& start) {
  const Result<ContextScope> scope = ContextScope::enter(device_);
  if (!scope) {
    return scope.error();
  }
  float milliseconds = 0;
  if (Status got = invoke("timing between events", driver().value().event_elapsed, &milliseconds,
                          static_cast<hipEvent_t>(start.handle_), static_cast<hipEvent_t>(handle_));
      !got) {
    return got.error();
  }
  return milliseconds;
}

Status Event::release() {
  void* handle = std::exchange(handle_, nullptr);
  if (handle == nullptr) {
    return {};
  }
  const Result<ContextScope> scope = ContextScope::enter(device_);
  if (!scope) {
    return scope.error();
  }
  return invoke("destroying an event", driver().value().event_destroy,
                static_cast<hipEvent_t>(handle));
}

}  // namespace monarch::native
