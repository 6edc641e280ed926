#include "wire/cast.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace monarch::wire {
namespace {

using base::Bytes;
using base::Code;
using base::Error;

constexpr std::uint32_t kAnswers = 1;
constexpr std::uint8_t kActor = 1;
constexpr std::uint8_t kRank = 2;
constexpr std::uint8_t kPrevious = 4;
constexpr std::uint8_t kAfter = 8;
constexpr std::size_t kBranchHead = 16;
constexpr std::size_t kDiffering = 20;

template <typename Integer>
void append(std::vector<std::byte>& out, Integer value) {
  if constexpr (sizeof(Integer) == 1) {
    out.push_back(static_cast<std::byte>(value));
  } else {
    out.resize(out.size() + sizeof(Integer));
    base::store_little(base::MutableBytes(out).last(sizeof(Integer)), value);
  }
}

// Takes from the front of some bytes; what is not there reads as zero, and good() is false after.
class Reader {
 public:
  explicit Reader(Bytes& bytes) noexcept : bytes_(bytes) {}

  template <typename Integer>
  Integer take() noexcept {
    const Bytes part = bytes(sizeof(Integer));
    if (part.empty()) return 0;
    if constexpr (sizeof(Integer) == 1) {
      return static_cast<Integer>(part[0]);
    } else {
      return base::load_little<Integer>(part);
    }
  }
  Bytes bytes(std::size_t size) noexcept {
    if (size > bytes_.size()) good_ = false;
    if (!good_) return {};
    const Bytes part = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return part;
  }
  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size(); }

 private:
  Bytes& bytes_;
  bool good_ = true;
};

Error malformed(std::string_view what) {
  return Error{Code::kMalformed, std::string(what) + " that is cut short, or says what it cannot"};
}

void append_receivers(std::vector<std::byte>& out, std::span<const Receiver> receivers) {
  Receiver before{.rank = ~std::uint32_t{0}};
  for (const Receiver& receiver : receivers) {
    const bool actor = receiver.actor != before.actor;
    const bool rank = receiver.rank != before.rank + 1;
    const bool previous = receiver.previous != before.previous;
    const bool after = receiver.after != before.after;
    append(out, static_cast<std::uint8_t>((actor ? kActor : 0) | (rank ? kRank : 0) |
                                          (previous ? kPrevious : 0) | (after ? kAfter : 0)));
    append(out, receiver.proc);
    if (actor) append(out, receiver.actor);
    if (rank) append(out, receiver.rank);
    if (previous) append(out, receiver.previous);
    if (after) append(out, receiver.after);
    before = receiver;
  }
}

bool read_receivers(Reader& in, std::size_t count, std::vector<Receiver>& receivers) {
  if (count > in.left() / 9) return false;
  receivers.reserve(count);
  Receiver receiver{.rank = ~std::uint32_t{0}};
  for (std::size_t i = 0; i < count; ++i) {
    const auto flags = in.take<std::uint8_t>();
    if ((flags & ~(kActor | kRank | kPrevious | kAfter)) != 0) return false;
    receiver.proc = in.take<std::uint64_t>();
    if ((flags & kActor) != 0) receiver.actor = in.take<std::uint64_t>();
    receiver.rank = (flags & kRank) != 0 ? in.take<std::uint32_t>() : receiver.rank + 1;
    if ((flags & kPrevious) != 0) receiver.previous = in.take<std::uint64_t>();
    if ((flags & kAfter) != 0) receiver.after = in.take<std::uint64_t>();
    receivers.push_back(receiver);
  }
  return in.good();
}

void append_branch(std::vector<std::byte>& out, const Branch& branch) {
  append(out, branch.relay);
  append(out, static_cast<std::uint32_t>(branch.receivers.size()));
  append(out, static_cast<std::uint32_t>(branch.branches.size()));
  append_receivers(out, branch.receivers);
  for (const Branch& below : branch.branches) {
    const std::size_t start = out.size();
    append(out, std::uint32_t{0});
    append_branch(out, below);
    base::store_little(base::MutableBytes(out).subspan(start),
                       static_cast<std::uint32_t>(out.size() - start - 4));
  }
}

// Adds the ranks of a branch and all below it; false for what is none.
bool add_ranks(Bytes branch, std::size_t depth, Ranks& ranks) {
  if (depth > k_most_depth) return false;
  Reader in(branch);
  (void)in.take<std::uint64_t>();
  const auto receivers = in.take<std::uint32_t>();
  const auto branches = in.take<std::uint32_t>();
  std::vector<Receiver> found;
  if (!in.good() || !read_receivers(in, receivers, found)) return false;
  for (const Receiver& receiver : found) ranks.add(receiver.rank);
  for (std::uint32_t i = 0; i < branches; ++i) {
    const Bytes below = in.bytes(in.take<std::uint32_t>());
    if (!in.good() || below.size() < kBranchHead || !add_ranks(below, depth + 1, ranks)) return false;
  }
  return in.left() == 0;
}

}  // namespace

std::vector<std::byte> write_branch(const Branch& branch) {
  std::vector<std::byte> out;
  append_branch(out, branch);
  return out;
}

std::vector<std::byte> cast_message(const Cast& cast, Bytes branch) {
  std::vector<std::byte> message(k_cast_head + branch.size());
  base::LittleWriter out(message);
  out.put(cast.origin);
  out.put(cast.number);
  out.put(cast.stable);
  out.put(cast.route);
  out.put(static_cast<std::uint32_t>(branch.size()));
  out.put(cast.answers ? kAnswers : 0U);
  std::ranges::copy(branch, base::MutableBytes(message).subspan(k_cast_head).begin());
  return message;
}

std::vector<std::byte> recast_message(const Recast& recast) {
  std::vector<std::byte> message(k_recast_head + kDiffering * recast.differing.size());
  base::LittleWriter out(message);
  out.put(recast.cast.origin);
  out.put(recast.cast.number);
  out.put(recast.cast.stable);
  out.put(recast.cast.route);
  out.put(recast.previous);
  out.put(recast.more);
  out.put(static_cast<std::uint32_t>(recast.differing.size()));
  out.put(recast.cast.answers ? kAnswers : 0U);
  for (const Differing& one : recast.differing) {
    out.put(one.rank);
    out.put(one.previous);
    out.put(one.after);
  }
  return message;
}

void write_deliver(const Deliver& deliver, base::MutableBytes head) noexcept {
  base::LittleWriter out(head);
  out.put(deliver.origin);
  out.put(deliver.number);
  out.put(deliver.previous);
  out.put(deliver.after);
  out.put(deliver.stable);
}

void write_answer(const Answer& answer, base::MutableBytes head) noexcept {
  base::LittleWriter out(head);
  out.put(answer.origin);
  out.put(answer.number);
  out.put(answer.rank);
  out.put(answer.status);
}

std::vector<std::byte> gathered_message(const Gathered& gathered) {
  std::vector<std::byte> out;
  append(out, gathered.origin);
  append(out, gathered.number);
  for (const Group& group : gathered.groups) {
    append(out, group.status);
    append(out, static_cast<std::uint32_t>(group.payload.size()));
    append(out, static_cast<std::uint32_t>(group.ranks.runs().size()));
    for (const Ranks::Run& run : group.ranks.runs()) {
      append(out, run.first);
      append(out, run.count);
    }
    out.insert(out.end(), group.payload.begin(), group.payload.end());
  }
  return out;
}

std::vector<std::byte> done_message(const Done& done) {
  std::vector<std::byte> out;
  append(out, done.origin);
  for (const std::uint64_t number : done.numbers) append(out, number);
  return out;
}

base::Result<Cast> read_cast(Bytes& message, Bytes& plan) {
  Reader in(message);
  Cast cast;
  cast.origin = in.take<std::uint64_t>();
  cast.number = in.take<std::uint64_t>();
  cast.stable = in.take<std::uint64_t>();
  cast.route = in.take<std::uint64_t>();
  const auto size = in.take<std::uint32_t>();
  const auto flags = in.take<std::uint32_t>();
  plan = in.bytes(size);
  if (!in.good() || flags > kAnswers || cast.number == 0 || cast.stable >= cast.number) {
    return malformed("a cast");
  }
  cast.answers = flags == kAnswers;
  return cast;
}

base::Result<Recast> read_recast(Bytes& message) {
  Reader in(message);
  Recast recast;
  Cast& cast = recast.cast;
  cast.origin = in.take<std::uint64_t>();
  cast.number = in.take<std::uint64_t>();
  cast.stable = in.take<std::uint64_t>();
  cast.route = in.take<std::uint64_t>();
  recast.previous = in.take<std::uint64_t>();
  recast.more = in.take<std::uint64_t>();
  const auto count = in.take<std::uint32_t>();
  const auto flags = in.take<std::uint32_t>();
  if (!in.good() || flags > kAnswers || cast.route == 0 || cast.stable >= cast.number ||
      recast.previous >= cast.number || count > in.left() / kDiffering) {
    return malformed("a cast");
  }
  cast.answers = flags == kAnswers;
  recast.differing.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Differing one{.rank = in.take<std::uint32_t>(),
                        .previous = in.take<std::uint64_t>(),
                        .after = in.take<std::uint64_t>()};
    const bool in_order = i == 0 || recast.differing.back().rank < one.rank;
    if (!in_order || one.previous >= cast.number) return malformed("a cast");
    recast.differing.push_back(one);
  }
  return recast;
}

base::Result<Plan> read_plan(Bytes branch) {
  Reader in(branch);
  Plan plan;
  plan.relay = in.take<std::uint64_t>();
  const auto receivers = in.take<std::uint32_t>();
  const auto branches = in.take<std::uint32_t>();
  if (!in.good() || !read_receivers(in, receivers, plan.receivers)) return malformed("a plan");
  for (std::uint32_t i = 0; i < branches; ++i) {
    Plan::Below below;
    below.branch = in.bytes(in.take<std::uint32_t>());
    if (!in.good() || below.branch.size() < kBranchHead) return malformed("a plan");
    below.relay = base::load_little<std::uint64_t>(below.branch);
    if (!add_ranks(below.branch, 1, below.ranks)) return malformed("a plan");
    plan.below.push_back(std::move(below));
  }
  if (in.left() != 0) return malformed("a plan");
  return plan;
}

base::Result<Deliver> read_deliver(Bytes& message) {
  Reader in(message);
  Deliver deliver;
  deliver.origin = in.take<std::uint64_t>();
  deliver.number = in.take<std::uint64_t>();
  deliver.previous = in.take<std::uint64_t>();
  deliver.after = in.take<std::uint64_t>();
  deliver.stable = in.take<std::uint64_t>();
  if (!in.good() || deliver.previous >= deliver.number || deliver.stable >= deliver.number) {
    return malformed("a delivery");
  }
  return deliver;
}

base::Result<Answer> read_answer(Bytes& message) {
  Reader in(message);
  Answer answer;
  answer.origin = in.take<std::uint64_t>();
  answer.number = in.take<std::uint64_t>();
  answer.rank = in.take<std::uint32_t>();
  answer.status = in.take<std::uint32_t>();
  if (!in.good() || answer.status > k_elsewhere || message.size() > k_most_answer) {
    return malformed("an answer");
  }
  return answer;
}

base::Result<Gathered> read_gathered(Bytes message) {
  Reader in(message);
  Gathered gathered;
  gathered.origin = in.take<std::uint64_t>();
  gathered.number = in.take<std::uint64_t>();
  while (in.good() && in.left() > 0) {
    Group group;
    group.status = in.take<std::uint32_t>();
    const auto size = in.take<std::uint32_t>();
    const auto runs = in.take<std::uint32_t>();
    if (!in.good() || runs > in.left() / 8 || group.status > k_elsewhere) break;
    std::uint64_t end = 0;
    for (std::uint32_t i = 0; i < runs; ++i) {
      const auto first = in.take<std::uint32_t>();
      const auto count = in.take<std::uint32_t>();
      if (count == 0 || (i > 0 && first <= end)) return malformed("gathered answers");
      end = std::uint64_t{first} + count;
      if (end > std::uint64_t{1} << 32) return malformed("gathered answers");
      group.ranks.add(first, count);
    }
    group.payload = in.bytes(size);
    if (!in.good()) break;
    gathered.groups.push_back(std::move(group));
  }
  if (!in.good() || in.left() != 0 || gathered.groups.empty()) return malformed("gathered answers");
  return gathered;
}

base::Result<Done> read_done(Bytes message) {
  Reader in(message);
  Done done;
  done.origin = in.take<std::uint64_t>();
  if (!in.good() || in.left() == 0 || in.left() % 8 != 0) return malformed("a list of casts");
  while (in.left() > 0) done.numbers.push_back(in.take<std::uint64_t>());
  return done;
}

base::Result<std::uint64_t> read_barrier(Bytes message) {
  if (message.size() != k_barrier_size) return malformed("a barrier");
  return base::load_little<std::uint64_t>(message);
}

std::vector<Hop> shape(std::span<const std::size_t> wanted, std::size_t fan_out,
                       const std::function<bool(std::size_t, std::size_t)>& usable) {
  std::vector<Hop> hops;
  if (wanted.size() <= fan_out) {
    for (const std::size_t place : wanted) {
      if (usable(k_root, place)) hops.push_back({place, k_root});
    }
    return hops;
  }
  std::map<std::size_t, std::size_t> from;  // by place; whoever is above has a smaller one
  for (std::size_t place : wanted) {
    while (place != k_root && !from.contains(place)) {
      if (!usable(k_root, place)) break;  // it is gone
      std::size_t up = above(place, fan_out);
      while (up != k_root && !(usable(k_root, up) && usable(up, place))) up = above(up, fan_out);
      from.emplace(place, up);
      place = up;
    }
  }
  hops.reserve(from.size());
  for (const auto& [place, up] : from) hops.push_back({place, up});
  return hops;
}

}  // namespace monarch::wire
