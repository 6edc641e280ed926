#include "wire/watch.hpp"

#include <doctest/doctest.h>

namespace monarch::wire {
namespace {

using base::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Instant kStart{seconds(100)};
constexpr Pace kPace{.beat = milliseconds(500), .misses = 4};

TEST_CASE("a silent peer is asked once a beat has passed, and told once after all of them") {
  Watch watch;
  watch.join(kStart);
  CHECK_FALSE(watch.look(kStart + milliseconds(499), kPace).ping);
  CHECK(watch.look(kStart + milliseconds(500), kPace).ping);
  CHECK_FALSE(watch.look(kStart + milliseconds(1000), kPace).ping);
  CHECK_FALSE(watch.look(kStart + milliseconds(1999), kPace).silent.has_value());
  CHECK(watch.look(kStart + milliseconds(2000), kPace).silent == milliseconds(2000));
  CHECK_FALSE(watch.look(kStart + milliseconds(2500), kPace).silent.has_value());
  CHECK(watch.heard(kStart + milliseconds(2600)));
  CHECK_FALSE(watch.heard(kStart + milliseconds(2700)));
  CHECK(watch.look(kStart + milliseconds(3200), kPace).ping);
}

TEST_CASE("who was silent when its connection broke is back with the next one") {
  Watch watch;
  watch.join(kStart);
  CHECK(watch.look(kStart + seconds(2), kPace).silent.has_value());
  watch.break_off(kStart + seconds(3));
  CHECK_FALSE(watch.look(kStart + milliseconds(3400), kPace).silent.has_value());
  CHECK(watch.resume(kStart + milliseconds(3450)));
  CHECK(watch.state() == Watch::State::kUp);
}

TEST_CASE("a connection that broke is waited for as long as a beat, and a quarter of a second") {
  Watch watch;
  watch.join(kStart);
  watch.break_off(kStart);
  CHECK(watch.ends(kPace) == kStart + milliseconds(500));
  CHECK(watch.ends({.beat = milliseconds(10)}) == kStart + milliseconds(250));
  CHECK_FALSE(watch.look(kStart + milliseconds(499), kPace).over);
  CHECK(watch.look(kStart + milliseconds(500), kPace).over);
}

TEST_CASE("time in which this process did not run is no silence of its peers") {
  Watch watch;
  Rhythm rhythm;
  watch.join(kStart);
  CHECK(rhythm.due(kStart) == milliseconds(0));
  rhythm.again(kStart, kPace.beat);
  CHECK_FALSE(rhythm.due(kStart + milliseconds(100)).has_value());
  CHECK(rhythm.due(kStart + milliseconds(600)) == milliseconds(0));
  rhythm.again(kStart + milliseconds(600), kPace.beat);
  const Instant awake = kStart + seconds(60);
  const auto away = rhythm.due(awake);
  REQUIRE(away.has_value());
  CHECK(*away == awake - (kStart + milliseconds(1100)));
  watch.excuse(awake, *away);
  CHECK_FALSE(watch.look(awake, kPace).silent.has_value());
  CHECK(watch.look(awake + seconds(2), kPace).silent.has_value());
  watch.excuse(awake, seconds(1000));
  CHECK(watch.look(awake + milliseconds(2500), kPace).silent == std::nullopt);
}

TEST_CASE("who dials is taken in, unless another link stands or it is fenced") {
  Watch watch;
  const auto meet = [&watch](bool going_on, bool dialling, bool stands, bool untouched) {
    return watch.meet(going_on, dialling, stands, untouched);
  };
  CHECK(meet(false, false, false, false) == Meeting::kTake);
  CHECK(meet(false, true, false, false) == Meeting::kTake);
  CHECK(meet(false, true, true, false) == Meeting::kDuplicate);
  CHECK(meet(true, false, false, false) == Meeting::kGone);
  // The own dial was taken over there, and has not heard of it.
  CHECK(meet(true, true, false, false) == Meeting::kDuplicate);
  watch.join(kStart);
  CHECK(meet(false, false, false, true) == Meeting::kDuplicate);
  CHECK(meet(true, false, false, false) == Meeting::kGoOn);
  CHECK(meet(true, true, true, false) == Meeting::kDuplicate);
  watch.break_off(kStart);
  CHECK(meet(false, false, false, true) == Meeting::kBegin);
  CHECK(meet(false, false, false, false) == Meeting::kDuplicate);
  CHECK(meet(true, true, false, false) == Meeting::kGoOn);
  watch.leave();
  CHECK(watch.left());
  CHECK(meet(true, false, false, false) == Meeting::kGone);
  CHECK(meet(false, false, false, false) == Meeting::kTake);
  watch.fence();
  CHECK(meet(false, false, false, false) == Meeting::kGone);
  CHECK(meet(true, true, false, false) == Meeting::kGone);
  watch.leave();
  CHECK(watch.fenced());
  CHECK(watch.ever_joined());
}

}  // namespace
}  // namespace monarch::wire
