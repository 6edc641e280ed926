#include "sim/history.hpp"

#include <array>
#include <cstdio>

namespace monarch::sim {

std::string_view name(What what) noexcept {
  switch (what) {
    case What::kSent: return "sent";
    case What::kHandled: return "handled";
    case What::kCalled: return "called";
    case What::kAnswered: return "answered";
    case What::kFailed: return "failed";
    case What::kLost: return "lost";
    case What::kFenced: return "fenced";
    case What::kSpawned: return "spawned";
    case What::kStarted: return "started";
    case What::kDeath: return "death";
    case What::kEnded: return "ended";
    case What::kRefused: return "refused";
    case What::kCast: return "cast";
    case What::kFault: return "fault";
    case What::kCalm: break;
  }
  return "calm";
}

std::string line(const Event& event) {
  std::array<char, 160> text{};
  const double seconds = std::chrono::duration<double>(event.time.time_since_epoch()).count();
  const std::string_view what = name(event.what);
  std::snprintf(text.data(), text.size(), "%12.6f %-9.*s %12llx %12llx %llu %.*s", seconds,
                static_cast<int>(what.size()), what.data(),
                static_cast<unsigned long long>(event.at),
                static_cast<unsigned long long>(event.other),
                static_cast<unsigned long long>(event.number), static_cast<int>(event.text.size()),
                event.text.data());
  return text.data();
}

}  // namespace monarch::sim
