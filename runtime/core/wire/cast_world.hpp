// For tests: one origin, relays and their processes, and links that are in order and may end, all
// driven by a stream of choices. What is promised of casts is required after each step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "wire/cast_lane.hpp"
#include "wire/cast_origin.hpp"
#include "wire/cast_relay.hpp"
#include "wire/cast_route.hpp"

namespace monarch::wire::world {

// The place of the call comes by what compilers have built in: Debian 12's clang has no
// std::source_location.
inline void require(bool condition, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  if (condition) return;
  std::fprintf(stderr, "%s:%d: not so\n", file, line);
  std::abort();
}

class World {
 public:
  // `choose(n)`: a number below n.
  using Choose = std::function<std::uint32_t(std::uint32_t)>;

  World(std::uint32_t hosts, std::uint32_t procs, std::size_t fan_out, Choose choose)
      : fan_out_(fan_out), choose_(std::move(choose)) {
    for (std::uint64_t host = 0; host < hosts; ++host) {
      relays_.emplace(relay_id(host), CastRelay({.routes = k_few_routes}));
      for (std::uint64_t i = 0; i < procs; ++i) {
        const std::uint64_t id = 1000 + host * procs + i;
        procs_.emplace(id, Proc{.host = host});
      }
    }
  }

  void step() {
    switch (choose_(16)) {
      case 0:
      case 1:
        cast(/*answers=*/true);
        break;
      case 2:
        cast(/*answers=*/false);
        break;
      case 3:
      case 4:
        send_direct();
        break;
      case 5:
        if (choose_(24) == 0) kill_relay();
        break;
      case 6:
        if (choose_(8) == 0) cut();
        break;
      case 7:
        if (choose_(24) == 0) kill_proc();
        break;
      case 8:
        pass_time(choose_(2) == 0 ? std::chrono::microseconds(400) : std::chrono::milliseconds(30));
        break;
      case 9:
      case 10:
        answer_some();
        break;
      default:
        move_one();
    }
  }

  // How many messages said no more than what differs.
  [[nodiscard]] std::size_t again() const noexcept { return again_; }

  // Until nothing is on the way any more: everything that was promised has to be there.
  void finish() {
    for (bool busy = true; busy;) {
      busy = false;
      while (move_one()) busy = true;
      while (answer_some()) busy = true;
      pass_time(std::chrono::milliseconds(30));
      busy = busy || !channels_.empty();
    }
    require(origin_.open() == 0);
    require(origin_.stable() == origin_.next() - 1);
    for (const auto& [id, relay] : relays_) require(gone_.contains(id) || relay.flights() == 0);
    for (const auto& [id, proc] : procs_) {
      if (proc.dead) continue;
      require(proc.taken == proc.sent);
      require(proc.lane.waiting() == 0);
      for (const std::uint64_t number : proc.calls) require(answered_.contains({number, id}));
    }
  }

 private:
  struct Frame {
    Kind kind;
    std::vector<std::byte> message;
    std::uint64_t item = 0;  // what a message that is delivered says
  };
  struct Item {
    std::uint64_t value = 0;
    std::uint64_t number = 0;  // of a cast that wants an answer
    std::uint32_t rank = 0;
  };
  struct Proc {
    std::uint64_t host = 0;
    bool dead = false;
    SendLane out{};                // at the origin
    std::uint64_t sent = 0;        // messages, each says which it is
    std::vector<std::uint64_t> calls{};
    ReceiveLane<Item, std::uint32_t> lane{};
    std::uint64_t taken = 0;
    std::vector<Item> running{};
  };
  using Ends = std::pair<std::uint64_t, std::uint64_t>;

  static constexpr std::uint64_t kOrigin = 1;
  static constexpr std::size_t k_few_routes = 4;
  static constexpr std::uint64_t relay_id(std::uint64_t host) { return 100 + host; }

  [[nodiscard]] bool linked(std::uint64_t a, std::uint64_t b) const {
    return !gone_.contains(a) && !gone_.contains(b) && !cut_.contains(std::minmax(a, b));
  }

  void send(std::uint64_t from, std::uint64_t to, Frame frame) {
    if (linked(from, to)) channels_[{from, to}].push_back(std::move(frame));
  }

  void cast(bool answers) {
    const std::uint64_t number = origin_.next();
    std::vector<CastRoute::Member> members;
    std::uint32_t rank = 0;
    const bool all = choose_(2) == 0;
    for (auto& [id, proc] : procs_) {
      const bool gets_it = !heard_.contains(id) && !heard_.contains(relay_id(proc.host)) &&
                           (all || choose_(2) != 0);
      if (gets_it) members.push_back({{.proc = id, .actor = 7, .rank = rank}, proc.host});
      ++rank;
    }
    if (members.empty()) return;
    std::optional<CastRoute> of_some;
    std::optional<CastRoute>& route = all ? of_all_ : of_some;
    const auto usable = [&](std::uint64_t relay) { return !heard_.contains(relay); };
    if (!route || !route->holds(origin_, usable)) route.emplace(way_to(std::move(members)));
    std::vector<CastOrigin::Entrusted> receivers = route->receivers();
    for (CastOrigin::Entrusted& one : receivers) {
      Proc& proc = procs_.at(one.to.proc);
      std::tie(one.to.previous, one.to.after) = proc.out.cast(number);
      values_[{number, one.to.proc}] = ++proc.sent;
      if (!answers) continue;
      proc.calls.push_back(number);
      waited_[number].insert(one.to.proc);
    }
    answers_[number] = answers;
    for (auto& message : route->begin(origin_, kOrigin, std::move(receivers), answers)) {
      again_ += message.kind == Kind::kRecast ? 1 : 0;
      send(kOrigin, message.relay, {message.kind, std::move(message.head)});
    }
  }

  [[nodiscard]] CastRoute way_to(std::vector<CastRoute::Member> members) {
    std::vector<std::size_t> wanted;
    std::vector<std::uint64_t> relays;
    for (std::size_t host = 0; host < relays_.size(); ++host) {
      relays.push_back(relay_id(host));
      if (!heard_.contains(relay_id(host))) wanted.push_back(host);
    }
    // What the origin has not heard of it does not know.
    const auto hops = shape(wanted, fan_out_, [&](std::size_t from, std::size_t place) {
      return (from == k_root || !heard_.contains(relay_id(from))) &&
             !heard_.contains(relay_id(place));
    });
    return {origin_, hops, relays, std::move(members)};
  }

  void send_direct() {
    auto at = procs_.begin();
    std::advance(at, choose_(static_cast<std::uint32_t>(procs_.size())));
    auto& [id, proc] = *at;
    if (gone_.contains(id)) return;
    if (const std::uint64_t number = proc.out.barrier(); number != 0) {
      std::vector<std::byte> message(8);
      base::store_little(base::MutableBytes(message), number);
      send(kOrigin, id, {Kind::kBarrier, message});
    }
    proc.out.passed();
    send(kOrigin, id, {.kind = Kind::kCall, .message = {}, .item = ++proc.sent});
  }

  void kill_relay() {
    const std::uint64_t host = choose_(static_cast<std::uint32_t>(relays_.size()));
    if (gone_.contains(relay_id(host))) return;
    std::vector<std::uint64_t> dead{relay_id(host)};
    for (auto& [id, proc] : procs_) {
      if (proc.host == host && !gone_.contains(id)) dead.push_back(id);
    }
    die(dead);
  }

  void kill_proc() {
    auto at = procs_.begin();
    std::advance(at, choose_(static_cast<std::uint32_t>(procs_.size())));
    if (!gone_.contains(at->first)) die({at->first});
  }

  // The ends of their links are heard in the order of the links: behind what they had sent.
  void die(const std::vector<std::uint64_t>& dead) {
    for (const std::uint64_t one : dead) {
      for (const auto& [other, relay] : relays_) end_link(one, other);
      end_link(one, kOrigin);
      if (const auto proc = procs_.find(one); proc != procs_.end()) proc->second.dead = true;
    }
    for (const std::uint64_t one : dead) {
      gone_.insert(one);
      std::erase_if(channels_, [&](const auto& item) { return item.first.second == one; });
    }
  }

  void end_link(std::uint64_t from, std::uint64_t to) {
    if (from == to || !linked(from, to)) return;
    channels_[{from, to}].push_back({Kind::kPing, {}});  // stands for the end of the link
  }

  void cut() {
    if (relays_.size() < 2) return;
    const std::uint64_t a = choose_(static_cast<std::uint32_t>(relays_.size()));
    const std::uint64_t b = choose_(static_cast<std::uint32_t>(relays_.size()));
    if (a == b || !linked(relay_id(a), relay_id(b))) return;
    end_link(relay_id(a), relay_id(b));
    end_link(relay_id(b), relay_id(a));
    cut_.insert(std::minmax(relay_id(a), relay_id(b)));
  }

  void pass_time(base::Duration by) {
    now_ += by;
    for (auto& [id, relay] : relays_) {
      if (gone_.contains(id)) continue;
      CastRelay::Effects effects;
      relay.expire(now_, effects);
      carry_out(id, effects, {});
    }
  }

  bool answer_some() {
    std::vector<Proc*> with;
    std::vector<std::uint64_t> ids;
    for (auto& [id, proc] : procs_) {
      if (proc.running.empty() || proc.dead) continue;
      with.push_back(&proc);
      ids.push_back(id);
    }
    if (with.empty()) return false;
    const std::uint32_t which = choose_(static_cast<std::uint32_t>(with.size()));
    Proc& proc = *with[which];
    const std::size_t place = choose_(static_cast<std::uint32_t>(proc.running.size()));
    const Item item = proc.running[place];
    proc.running.erase(proc.running.begin() + static_cast<std::ptrdiff_t>(place));
    const bool large = choose_(8) == 0;
    const std::uint64_t via = large ? proc.lane.no_answer(item.number)
                                    : proc.lane.answer(item.number, [&] { return item.rank; });
    if (via != 0) {
      std::vector<std::byte> head(k_answer_head);
      write_answer({kOrigin, item.number, item.rank, large ? k_elsewhere : item.rank % 2}, head);
      send(ids[which], via, {Kind::kAnswer, head});
    }
    if (large || via == 0) direct_.insert({item.number, ids[which]});
    if (large || via == 0) send(ids[which], kOrigin, {Kind::kReply, {}, item.number});
    return true;
  }

  bool move_one() {
    std::erase_if(channels_, [](const auto& item) { return item.second.empty(); });
    if (channels_.empty()) return false;
    auto at = channels_.begin();
    std::advance(at, choose_(static_cast<std::uint32_t>(channels_.size())));
    const auto [from, to] = at->first;
    const Frame frame = std::move(at->second.front());
    at->second.pop_front();
    if (to == kOrigin) {
      at_origin(from, frame);
    } else if (relays_.contains(to)) {
      at_relay(from, to, frame);
    } else {
      at_proc(from, to, frame);
    }
    return true;
  }

  void at_origin(std::uint64_t from, const Frame& frame);
  void answer_came(std::uint64_t number, std::uint64_t proc);
  void at_relay(std::uint64_t from, std::uint64_t to, const Frame& frame);
  void carry_out(std::uint64_t relay, CastRelay::Effects& effects, const Cast& cast);
  void at_proc(std::uint64_t from, std::uint64_t to, const Frame& frame);

  const std::size_t fan_out_;
  Choose choose_;
  base::Instant now_{};
  CastOrigin origin_{k_few_routes};
  std::optional<CastRoute> of_all_;
  std::size_t again_ = 0;
  std::map<std::uint64_t, CastRelay> relays_;
  std::map<std::uint64_t, Proc> procs_;
  std::map<Ends, std::deque<Frame>> channels_;
  std::set<std::uint64_t> gone_;
  std::set<std::uint64_t> heard_;  // those of them that the origin knows of
  std::set<Ends> cut_;
  std::map<Ends, std::uint64_t> values_;    // what a cast says to a process, by number and process
  std::map<std::uint64_t, bool> answers_;   // by number
  std::set<Ends> answered_;                 // number and process
  std::set<Ends> direct_;                   // likewise, of answers that did not go by a relay
  std::map<std::uint64_t, std::set<std::uint64_t>> waited_;  // processes, by number
};

}  // namespace monarch::wire::world
