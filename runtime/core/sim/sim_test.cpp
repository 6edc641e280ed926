#include <doctest/doctest.h>

#include <string>

#include "sim/run.hpp"

namespace monarch::sim {
namespace {

// Some seed of these fails with the machine bent like that; what is broken then.
std::string broken_by(Bend bend, bool liveness) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Plan plan = plan_of(seed, liveness);
    plan.bend = bend;
    const Outcome outcome = run(plan);
    if (!outcome.verdict.ok()) return outcome.verdict.broken.front();
  }
  return "";
}

TEST_CASE("one seed is one run") {
  const Outcome one = run(plan_of(7, /*liveness=*/true));
  const Outcome other = run(plan_of(7, /*liveness=*/true));
  REQUIRE(one.history.size() == other.history.size());
  for (std::size_t i = 0; i < one.history.size(); ++i) {
    REQUIRE(line(one.history[i]) == line(other.history[i]));
  }
  CHECK(one.steps == other.steps);
  CHECK(run(plan_of(8, true)).steps != one.steps);
}

TEST_CASE("the machines as they are keep every promise, with faults and after them") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const bool liveness : {false, true}) {
      const Outcome outcome = run(plan_of(seed, liveness));
      CAPTURE(seed);
      CAPTURE(liveness);
      CHECK(outcome.verdict.broken == std::vector<std::string>{});
      CHECK(outcome.verdict.handled > 0);
    }
  }
}

TEST_CASE("a machine that is bent breaks a promise, and the checker says which") {
  struct Case {
    Bend bend;
    bool liveness;
    std::string_view says;
  };
  const Case cases[] = {
      {Bend::kTwice, false, "handled twice"},
      {Bend::kSkip, false, "a message before it was lost"},
      {Bend::kForgetTaken, false, "a session was refused"},
      {Bend::kDropReply, true, "a call never ended"},
      {Bend::kCastTwice, false, "handled twice"},
      {Bend::kNoBarrier, false, "a message before it was lost"},
      {Bend::kCastLost, true, "a call never ended"},
      {Bend::kNoFence, false, "declared dead had an effect"},
      {Bend::kTellTwice, false, "a death was told twice"},
      {Bend::kTellNobody, true, "a death was never told"},
      {Bend::kKeepCalls, true, "a call never ended"},
      {Bend::kNoBeats, true, "never"},
      {Bend::kHasty, false, "nothing but connections broke"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.says);
    CHECK(broken_by(each.bend, each.liveness).find(each.says) != std::string::npos);
  }
}

TEST_CASE("a network that repeats bytes is found out by the session") {
  Plan plan = plan_of(3, false);
  plan.network.repeat_bytes = true;
  CHECK_FALSE(run(plan).verdict.ok());
}

}  // namespace
}  // namespace monarch::sim
