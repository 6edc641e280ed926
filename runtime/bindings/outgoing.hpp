// A message on its way out of Python: its buffers held, what is large of it shipped ahead.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "actor/engine.hpp"
#include "buffer.hpp"

namespace monarch::bindings {

// A message's parts while it is sent.
class Outgoing {
 public:
  Outgoing(nb::handle data, nb::handle buffers) : data_(data) {
    if (buffers.is_none()) return;
    for (const nb::handle buffer : buffers) views_.push_back(held_.emplace_back(buffer).bytes());
  }
  [[nodiscard]] base::Bytes data() const noexcept { return data_.bytes(); }
  [[nodiscard]] bool large() const noexcept {
    std::size_t total = data().size();
    for (const base::Bytes view : views_) total += view.size();
    return total >= actor::k_large;
  }
  [[nodiscard]] std::span<const base::Bytes> buffers() const noexcept { return views_; }

 private:
  HeldBuffer data_;
  std::vector<HeldBuffer> held_;
  std::vector<base::Bytes> views_;
};

// Waits until it is over, letting signal handlers run in between.
template <typename Wait>
actor::Waited wait_out(Wait wait) {
  while (true) {
    actor::Waited waited;
    {
      const GilReleased released;
      waited = wait();
    }
    if (waited != actor::Waited::kSignal) return waited;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

// The parts of a large message, on their way ahead of it; of any other there is nothing to do.
class Ahead {
 public:
  Ahead(actor::Engine& engine, std::vector<std::uint64_t> procs, const Outgoing& outgoing)
      : engine_(engine), shipping_(std::in_place, std::move(procs), outgoing.data(),
                                   outgoing.buffers()) {
    try {
      if (wait_out([&] { return engine_.ship(*shipping_); }) == actor::Waited::kDone) return;
    } catch (...) {
      engine_.abandon(*shipping_);
      throw;
    }
    engine_.abandon(*shipping_);
    shipping_.reset();
  }
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;
  ~Ahead() {
    if (!shipping_) return;
    const GilReleased released;
    sent_ ? engine_.offer(*shipping_) : engine_.abandon(*shipping_);
  }

  [[nodiscard]] actor::Shipping* get() { return shipping_ ? &*shipping_ : nullptr; }
  void sent() { sent_ = true; }

 private:
  actor::Engine& engine_;
  std::optional<actor::Shipping> shipping_;
  bool sent_ = false;
};

// Calls send(shipping) with the parts of a large message shipped to `procs`.
template <typename Procs, typename Send>
auto send_ahead(actor::Engine& engine, const Outgoing& outgoing, Procs procs, Send send) {
  if (!outgoing.large()) return send(nullptr);
  Ahead ahead(engine, procs(), outgoing);
  auto result = send(ahead.get());
  if (result) ahead.sent();
  return result;
}

}  // namespace monarch::bindings
