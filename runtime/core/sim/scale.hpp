// A cast to very many processes and the answers to it, over the tree of host agents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/clock.hpp"

namespace monarch::sim {

struct ScalePlan {
  std::uint64_t seed = 1;
  std::size_t procs = 100;
  std::size_t per_host = 8;
  std::size_t fan_out = 16;
  std::size_t casts = 3;           // one after the other; the figures are of the last one
  std::size_t payload = 100;       // bytes of the message
  bool equal = true;               // all answers are the same
};

// Of the last cast: what the sessions wrote and took, heads and acknowledgements included.
struct ScaleRow {
  ScalePlan plan;
  std::size_t hosts = 0;
  std::size_t depth = 0;           // links from the client to the lowest agent
  base::Duration all_have_it = {}; // from the cast until the last process handled it
  base::Duration all_answered = {};
  struct Load {
    std::uint64_t most = 0;
    double mean = 0;
  };
  std::uint64_t client_bytes = 0, client_frames = 0;  // in and out
  Load agent_bytes = {}, agent_frames = {};
  std::uint64_t answers = 0;
  bool in_order = false;           // every process handled every cast once, in order
};

[[nodiscard]] ScaleRow scale(const ScalePlan& plan);

}  // namespace monarch::sim
