#pragma once

#include "monarch/native/error.hpp"

namespace monarch::native {

class Event;

/// A stream that does not wait for the default stream. The most urgent priority is the lowest
/// number; out of range is clamped by the driver. Move-only, destroyed with its owner.
class Stream {
 public:
  static Result<Stream> create(int device, int priority);

  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;
  ~Stream();

  int device() const { return device_; }
  /// The vendor's stream handle.
  void* handle() const { return handle_; }

  Status synchronize();
  /// True once all work given so far is done.
  Result<bool> query();
  /// Work given after this waits for the event.
  Status wait(const Event& event);
  /// Idempotent.
  Status release();

 private:
  Stream(int device, void* handle) : device_(device), handle_(handle) {}

  int device_{};
  void* handle_{};
};

/// A mark in a stream. Move-only, destroyed with its owner.
class Event {
 public:
  static Result<Event> create(int device, bool timing);

  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  int device() const { return device_; }
  void* handle() const { return handle_; }

  Status record(const Stream& stream);
  Status synchronize();
  Result<bool> query();
  /// Milliseconds from `start` to this event; both need `timing` and to have happened.
  Result<float> elapsed_since(const Event& start);
  Status release();

 private:
  Event(int device, void* handle) : device_(device), handle_(handle) {}

  int device_{};
  void* handle_{};
};

}  // namespace monarch::native
