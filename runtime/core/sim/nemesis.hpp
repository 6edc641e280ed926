// Who makes the faults of a simulated run: each run draws which kinds it has, and when.
#pragma once

#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/cluster.hpp"

namespace monarch::sim {

class Nemesis {
 public:
  Nemesis(Cluster& cluster, Instant end);
  void begin();
  // All links carry again, and all that was stopped goes on.
  void heal_all();

 private:
  enum class Fault { kReset, kResets, kCut, kIsolate, kSwizzle, kStop, kKill, kKillAgent, kPower };

  void next();
  void strike(Fault fault);
  void cut(Host from, Host to, Duration how_long);
  void isolate();
  void swizzle();
  void stop();
  void note(std::string_view text, std::uint64_t other = 0, std::uint64_t number = 0);
  [[nodiscard]] Host some_host();
  [[nodiscard]] std::vector<Id> living(bool agents) const;
  [[nodiscard]] Duration some_time();

  Cluster& cluster_;
  Random& random_;
  const Instant end_;
  std::vector<Fault> kinds_;
  Duration pause_{};
  std::set<std::pair<Host, Host>> cuts_;
  std::set<Id> stopped_;
};

}  // namespace monarch::sim
