#include "wire/ranks.hpp"

#include <doctest/doctest.h>

#include <random>
#include <set>

namespace monarch::wire {
namespace {

TEST_CASE("a set of ranks is one of runs") {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Ranks ranks;
    Ranks others;
    std::set<std::uint32_t> known;
    std::set<std::uint32_t> there;
    for (int i = 0; i < 20; ++i) {
      const auto first = static_cast<std::uint32_t>(random() % 64);
      const auto count = static_cast<std::uint32_t>(random() % 6);
      Ranks& into = i % 3 == 0 ? others : ranks;
      into.add(first, count);
      for (std::uint32_t j = 0; j < count; ++j) (i % 3 == 0 ? there : known).insert(first + j);
      const auto out = static_cast<std::uint32_t>(random() % 64);
      CHECK(ranks.take(out) == (known.erase(out) == 1));
    }
    const Ranks both = ranks.take(others);
    for (std::uint32_t rank = 0; rank < 80; ++rank) {
      CHECK(both.has(rank) == (known.contains(rank) && there.contains(rank)));
      CHECK(ranks.has(rank) == (known.contains(rank) && !there.contains(rank)));
    }
    CHECK(ranks.size() + both.size() == known.size());
  }
}

}  // namespace
}  // namespace monarch::wire
