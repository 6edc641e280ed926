// monarch_sim: runs seeds of the simulation and checks what happened.
//
//   monarch_sim [--seeds N] [--first S]      N seeds from S on, each in both modes
//   monarch_sim --seed S [--mode M] [--trace]  one seed again, with what happened
//   monarch_sim --scale N [--fan-out K] [--per-host H] [--distinct]
//                                            a cast to N processes: one JSON object
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/run.hpp"
#include "sim/scale.hpp"

namespace {

namespace sim = monarch::sim;

struct Options {
  std::uint64_t first = 1;
  std::uint64_t seeds = 1000;
  bool safety = true;
  bool liveness = true;
  bool trace = false;
  std::optional<sim::ScalePlan> scale;
};

constexpr int kUsage = 2;

[[noreturn]] void usage(const std::string& what) {
  std::fprintf(stderr,
               "monarch_sim: %s\n"
               "usage: monarch_sim [--seeds N] [--first S] [--seed S] "
               "[--mode safety|liveness|both] [--trace]\n"
               "       monarch_sim --scale N [--fan-out K] [--per-host H] [--distinct]\n",
               what.c_str());
  std::exit(kUsage);
}

std::uint64_t number(std::string_view option, const char* text) {
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text, &end, 10);
  if (*text == '\0' || *end != '\0') {
    usage(std::string(option) + " takes a number, not \"" + text + "\"");
  }
  return value;
}

std::size_t at_least(std::string_view option, const char* text, std::uint64_t least) {
  const std::uint64_t value = number(option, text);
  if (value < least) usage(std::string(option) + " is at least " + std::to_string(least));
  return value;
}

Options parse(int count, char** words) {
  Options options;
  sim::ScalePlan scale;
  for (int at = 1; at < count; ++at) {
    const std::string_view word = words[at];
    if (word == "--trace") {
      options.trace = true;
      continue;
    }
    if (word == "--distinct") {
      scale.equal = false;
      continue;
    }
    if (at + 1 == count) usage(std::string(word) + " is unknown, or lacks its value");
    const char* value = words[++at];
    if (word == "--seeds") {
      options.seeds = number(word, value);
    } else if (word == "--first") {
      options.first = number(word, value);
    } else if (word == "--seed") {
      options.first = number(word, value);
      options.seeds = 1;
    } else if (word == "--scale") {
      scale.procs = at_least(word, value, 1);
      options.scale = scale;
    } else if (word == "--fan-out") {
      scale.fan_out = at_least(word, value, 2);
    } else if (word == "--per-host") {
      scale.per_host = at_least(word, value, 1);
    } else if (word == "--mode") {
      const std::string_view mode = value;
      if (mode != "safety" && mode != "liveness" && mode != "both") {
        usage("--mode is safety, liveness or both, not \"" + std::string(mode) + "\"");
      }
      options.safety = mode != "liveness";
      options.liveness = mode != "safety";
    } else {
      usage("no option " + std::string(word));
    }
  }
  if (options.scale) options.scale = scale;
  return options;
}

double milliseconds(monarch::base::Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

int print_scale(const sim::ScalePlan& plan) {
  const sim::ScaleRow row = sim::scale(plan);
  std::printf(
      "{\"schema\": 1, \"procs\": %zu, \"hosts\": %zu, \"fan_out\": %zu, \"equal\": %s, "
      "\"depth\": %zu, \"have_it_ms\": %.3f, \"answered_ms\": %.3f, \"client_bytes\": %llu, "
      "\"client_messages\": %llu, \"agent_bytes_max\": %llu, \"agent_bytes_mean\": %.0f, "
      "\"agent_messages_max\": %llu, \"agent_messages_mean\": %.1f, \"answers\": %llu, "
      "\"in_order\": %s}\n",
      plan.procs, row.hosts, plan.fan_out, plan.equal ? "true" : "false", row.depth,
      milliseconds(row.all_have_it), milliseconds(row.all_answered),
      static_cast<unsigned long long>(row.client_bytes),
      static_cast<unsigned long long>(row.client_frames),
      static_cast<unsigned long long>(row.agent_bytes.most), row.agent_bytes.mean,
      static_cast<unsigned long long>(row.agent_frames.most), row.agent_frames.mean,
      static_cast<unsigned long long>(row.answers), row.in_order ? "true" : "false");
  return row.in_order && row.answers == plan.procs ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  const Options options = parse(count, words);
  if (options.scale) return print_scale(*options.scale);
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t runs = 0, failed = 0, steps = 0, handled = 0, deaths = 0, calls = 0;
  monarch::base::Duration slowest{};
  for (std::uint64_t seed = options.first; seed < options.first + options.seeds; ++seed) {
    for (const bool liveness : {false, true}) {
      if (!(liveness ? options.liveness : options.safety)) continue;
      const sim::Outcome outcome = sim::run(sim::plan_of(seed, liveness));
      ++runs;
      steps += outcome.steps;
      handled += outcome.verdict.handled;
      deaths += outcome.verdict.deaths;
      calls += outcome.verdict.calls;
      slowest = std::max(slowest, outcome.verdict.slowest_death);
      if (options.trace) {
        for (const sim::Event& event : outcome.history) std::puts(sim::line(event).c_str());
      }
      if (outcome.verdict.ok()) continue;
      ++failed;
      for (const std::string& broken : outcome.verdict.broken) std::puts(broken.c_str());
      std::printf("seed %llu fails; again: nox -s sim -- --seed %llu --mode %s --trace\n",
                  static_cast<unsigned long long>(seed), static_cast<unsigned long long>(seed),
                  liveness ? "liveness" : "safety");
    }
  }
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf(
      "%llu runs, %llu failed: %llu messages handled, %llu calls, %llu deaths told (the slowest "
      "%.2f s after), %llu events, %.1f s\n",
      static_cast<unsigned long long>(runs), static_cast<unsigned long long>(failed),
      static_cast<unsigned long long>(handled), static_cast<unsigned long long>(calls),
      static_cast<unsigned long long>(deaths), std::chrono::duration<double>(slowest).count(),
      static_cast<unsigned long long>(steps), wall);
  return failed == 0 ? 0 : 1;
}
