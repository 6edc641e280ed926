#include "wire/ranks.hpp"

#include <algorithm>

namespace monarch::wire {

void Ranks::add(std::uint32_t first, std::uint32_t count) {
  if (count == 0) return;
  const std::uint64_t end = std::uint64_t{first} + count;
  if (!runs_.empty()) {
    Run& last = runs_.back();
    if (std::uint64_t{last.first} + last.count == first) {  // they mostly come in order
      last.count += count;
      return;
    }
  }
  const auto touches = std::ranges::lower_bound(runs_, std::uint64_t{first}, {}, [](const Run& run) {
    return std::uint64_t{run.first} + run.count;
  });
  std::uint64_t from = first;
  std::uint64_t to = end;
  auto behind = touches;
  for (; behind != runs_.end() && behind->first <= end; ++behind) {
    from = std::min<std::uint64_t>(from, behind->first);
    to = std::max(to, std::uint64_t{behind->first} + behind->count);
  }
  const auto place = runs_.erase(touches, behind);
  runs_.insert(place, {static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to - from)});
}

void Ranks::add(const Ranks& others) {
  for (const Run& run : others.runs_) add(run.first, run.count);
}

bool Ranks::take(std::uint32_t rank) {
  const auto found = std::ranges::upper_bound(runs_, rank, {}, &Run::first);
  if (found == runs_.begin()) return false;
  const auto run = found - 1;
  if (rank - run->first >= run->count) return false;
  const Run behind{rank + 1, run->first + run->count - rank - 1};
  run->count = rank - run->first;
  auto place = run + 1;
  if (run->count == 0) place = runs_.erase(run);
  if (behind.count != 0) runs_.insert(place, behind);
  return true;
}

Ranks Ranks::take(const Ranks& others) {
  Ranks both;
  Ranks left;
  auto other = others.runs_.begin();
  for (const Run& run : runs_) {
    std::uint64_t from = run.first;
    const std::uint64_t to = from + run.count;
    while (from < to) {
      while (other != others.runs_.end() && std::uint64_t{other->first} + other->count <= from) {
        ++other;
      }
      const std::uint64_t in = other == others.runs_.end()
                                   ? to
                                   : std::clamp<std::uint64_t>(other->first, from, to);
      left.add(static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(in - from));
      if (in == to) break;
      const std::uint64_t out = std::min(to, std::uint64_t{other->first} + other->count);
      both.add(static_cast<std::uint32_t>(in), static_cast<std::uint32_t>(out - in));
      from = out;
    }
  }
  runs_ = std::move(left.runs_);
  return both;
}

std::size_t Ranks::size() const noexcept {
  std::size_t total = 0;
  for (const Run& run : runs_) total += run.count;
  return total;
}

bool Ranks::has(std::uint32_t rank) const noexcept {
  const auto found = std::ranges::upper_bound(runs_, rank, {}, &Run::first);
  return found != runs_.begin() && rank - (found - 1)->first < (found - 1)->count;
}

}  // namespace monarch::wire
