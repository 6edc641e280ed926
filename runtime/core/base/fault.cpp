#include "base/fault.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <mutex>
#include <string>

namespace monarch::base {
namespace {

constexpr std::array<std::string_view, 8> kNames{
    "request-queued", "request-written", "request-read", "request-taken",
    "reply-queued",   "reply-written",   "reply-read",   "reply-taken",
};

struct Fault {
  bool kills = false;
  Boundary boundary = Boundary::kRequestQueued;
  std::uint64_t left = 0;  // passings until it happens
};

std::mutex mutex;
Fault fault;

Error refused(std::string_view text) {
  std::string names;
  for (const std::string_view name : kNames) names.append(names.empty() ? "" : ", ").append(name);
  return Error{Code::kArgument, "no fault: '" + std::string(text) +
                                    "'; wanted kill:PLACE:N or cut:PLACE:N with N from 1 and one of "
                                    "the places " +
                                    names};
}

}  // namespace

namespace detail {

std::atomic<bool> faults_on{false};

bool passed(Boundary boundary) {
  const std::lock_guard lock(mutex);
  if (fault.left == 0 || fault.boundary != boundary || --fault.left > 0) return false;
  faults_on.store(false, std::memory_order_relaxed);
  if (fault.kills) ::kill(::getpid(), SIGKILL);
  return true;
}

}  // namespace detail

Result<void> set_fault(std::string_view text) {
  const std::lock_guard lock(mutex);
  fault = {};
  detail::faults_on.store(false, std::memory_order_relaxed);
  if (text.empty()) return {};
  const std::size_t first = text.find(':');
  const std::size_t last = text.rfind(':');
  if (first == last || first == std::string_view::npos) return refused(text);
  const std::string_view action = text.substr(0, first);
  const std::string_view place = text.substr(first + 1, last - first - 1);
  const std::string_view count = text.substr(last + 1);
  Fault wanted{.kills = action == "kill"};
  const auto [end, error] =
      std::from_chars(count.data(), count.data() + count.size(), wanted.left);
  std::size_t index = 0;
  while (index < kNames.size() && kNames[index] != place) ++index;
  if ((!wanted.kills && action != "cut") || index == kNames.size() || error != std::errc{} ||
      end != count.data() + count.size() || wanted.left == 0) {
    return refused(text);
  }
  wanted.boundary = static_cast<Boundary>(index);
  fault = wanted;
  detail::faults_on.store(true, std::memory_order_relaxed);
  return {};
}

}  // namespace monarch::base
