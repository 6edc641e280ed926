#include "base/clock.hpp"

#include <doctest/doctest.h>

using namespace std::chrono_literals;
using monarch::base::ManualClock;
using monarch::base::SteadyClock;

TEST_CASE("a manual clock moves only when told") {
  ManualClock clock;
  const auto start = clock.now();
  CHECK(clock.now() == start);
  clock.advance(1500us);
  CHECK(clock.now() - start == 1500us);
}

TEST_CASE("the steady clock never goes back") {
  const SteadyClock clock;
  auto last = clock.now();
  for (int i = 0; i < 1000; ++i) {
    const auto now = clock.now();
    CHECK(now >= last);
    last = now;
  }
}
