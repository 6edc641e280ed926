// Any order of what can happen to a link: who is fenced stays so, what has no link is never silent,
// silence is told once until something is heard, and a break ends at its time. Each byte of the input
// is a step, the next one its argument.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "wire/watch.hpp"

namespace {

namespace wire = monarch::wire;
using State = wire::Watch::State;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const wire::Pace pace{.beat = std::chrono::milliseconds(100), .misses = 3};
  wire::Watch watch;
  wire::Rhythm rhythm;
  monarch::base::Instant now{std::chrono::seconds(1)};
  bool told = false;
  bool fenced = false;
  for (std::size_t at = 0; at + 1 < size; at += 2) {
    now += std::chrono::milliseconds(data[at + 1]);
    const bool linked = watch.state() == State::kUp || watch.state() == State::kBroken;
    switch (data[at] % 8) {
      case 0:
        if (!watch.fenced()) {
          watch.join(now);
          told = false;
        }
        break;
      case 1:
        if (linked) require(watch.heard(now) == std::exchange(told, false));
        break;
      case 2:
        if (watch.state() == State::kUp) watch.break_off(now);
        break;
      case 3:
        if (linked) require(watch.resume(now) == std::exchange(told, false));
        break;
      case 4:
        watch.leave();
        break;
      case 5:
        if (data[at + 1] == 255) {
          watch.fence();
          fenced = true;
        }
        break;
      case 6:
        if (const auto away = rhythm.due(now)) {
          watch.excuse(now, *away);
          rhythm.again(now, pace.beat);
        }
        break;
      default: {
        const bool up = watch.state() == State::kUp;
        const auto ends = watch.ends(pace);
        const wire::Watch::Due due = watch.look(now, pace);
        require(up || (!due.ping && !due.silent));
        require(due.over == (ends.has_value() && *ends <= now));
        if (due.silent) {
          require(!told && *due.silent >= pace.patience());
          told = true;
        }
      }
    }
    require(watch.fenced() == fenced);
    const bool dialling = (data[at] & 64) != 0;
    const wire::Meeting how = watch.meet((data[at] & 128) != 0, dialling, dialling, at % 3 == 0);
    if (fenced) require(how == wire::Meeting::kGone);
    if (how == wire::Meeting::kTake) require(watch.state() != State::kUp && !watch.broken());
  }
  return 0;
}
