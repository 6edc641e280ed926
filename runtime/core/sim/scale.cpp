#include "sim/scale.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/node.hpp"
#include "sim/relaying.hpp"
#include "wire/cast.hpp"
#include "wire/cast_lane.hpp"
#include "wire/cast_origin.hpp"
#include "wire/cast_route.hpp"

namespace monarch::sim {
namespace {

using base::Bytes;
using wire::Kind;

constexpr Id kOrigin = 1;
constexpr Id kAgents = 1000;
constexpr Id kProcs = 10'000'000;

// What each process has to do for a message, apart from the bytes; a core does that in this time.
constexpr Duration kPerMessage = microseconds(4);
constexpr std::uint64_t kBytesPerSecond = 1'250'000'000;  // 10 Gbit/s

// A process that nothing happens to but casts.
class Member : public Node {
 public:
  using Node::Node;

 protected:
  void send_to(Id peer, Kind kind, std::span<const Bytes> parts) { send(peer, kind, parts); }
  void lost(Id) override {}
  void silent(Id, bool) override {}
  bool may_dial(Id) const override { return false; }
};

class Leaf final : public Member {
 public:
  Leaf(Shared& shared, Id id, Host host, bool equal) : Member(shared, id, host), equal_(equal) {}

  [[nodiscard]] std::uint64_t handled() const noexcept { return handled_; }
  [[nodiscard]] Instant last() const noexcept { return last_; }
  [[nodiscard]] bool in_order() const noexcept { return in_order_; }

 private:
  struct Item {
    std::uint64_t number = 0;
    std::uint32_t rank = 0;
  };

  void take(Id peer, Kind kind, Bytes message) override {
    if (kind != Kind::kDeliver) return;
    const auto deliver = wire::read_deliver(message);
    const auto call = wire::read_call(message);
    std::vector<Item> out;
    (void)lane_.cast(*deliver, /*answers=*/true, peer, {deliver->number, call->rank}, out);
    for (const Item& item : out) {
      in_order_ = in_order_ && item.number == ++handled_;
      last_ = shared_.world.now();
      const std::uint64_t via = lane_.answer(item.number, [&] { return item.rank; });
      std::array<std::byte, wire::k_answer_head> head;
      wire::write_answer({kOrigin, item.number, item.rank, 0}, head);
      std::array<std::byte, 8> payload{};
      base::store_little(base::MutableBytes(payload), equal_ ? std::uint64_t{7} : id());
      const std::array<Bytes, 2> parts{head, payload};
      send_to(via, Kind::kAnswer, parts);
    }
  }

  const bool equal_;
  wire::ReceiveLane<Item, std::uint32_t> lane_;
  std::uint64_t handled_ = 0;
  Instant last_{};
  bool in_order_ = true;
};

class Relay final : public Member {
 public:
  Relay(Shared& shared, Id id, Host host)
      : Member(shared, id, host),
        casts_(shared.world,
               {.send = [this](Id to, Kind kind,
                               std::span<const Bytes> parts) { send_to(to, kind, parts); },
                .later = [this](Duration delay,
                                std::function<void()> what) { later(delay, std::move(what)); },
                .usable = [this](Id peer) { return usable(peer); }}) {}
  // A link to another process, made before there are casts.
  void meet(Id peer) { send_to(peer, Kind::kControl, {}); }

 private:
  void take(Id peer, Kind kind, Bytes message) override { (void)casts_.take(peer, kind, message); }

  Relaying casts_;
};

class Origin final : public Member {
 public:
  Origin(Shared& shared, const ScalePlan& plan, std::size_t hosts)
      : Member(shared, kOrigin, 0), plan_(plan), lanes_(plan.procs), payload_(plan.payload) {
    std::vector<std::size_t> wanted(hosts);
    for (std::size_t place = 0; place < hosts; ++place) wanted[place] = place;
    hops_ = wire::shape(wanted, plan.fan_out, [](std::size_t, std::size_t) { return true; });
    depths_.resize(hosts);
    for (const wire::Hop& hop : hops_) {
      depths_[hop.place] = hop.from == wire::k_root ? 1 : depths_[hop.from] + 1;
    }
  }

  [[nodiscard]] const std::vector<wire::Hop>& hops() const noexcept { return hops_; }
  [[nodiscard]] std::size_t depth() const noexcept { return std::ranges::max(depths_); }
  [[nodiscard]] std::uint64_t answers() const noexcept { return answers_; }
  [[nodiscard]] Instant last() const noexcept { return last_; }
  void meet(Id peer) { send_to(peer, Kind::kControl, {}); }

  void cast() {
    const std::uint64_t number = origin_.next();
    answers_ = 0;
    if (!route_) route_ = route();
    std::vector<wire::CastOrigin::Entrusted> receivers = route_->receivers();
    for (wire::CastOrigin::Entrusted& one : receivers) {
      std::tie(one.to.previous, one.to.after) = lanes_[one.to.rank].cast(number);
    }
    for (const auto& message : route_->begin(origin_, kOrigin, std::move(receivers), true)) {
      std::array<std::byte, wire::k_call_head> call;
      wire::write_call({.sender = kOrigin, .inbox = number}, call);
      const std::array<Bytes, 3> parts{Bytes(message.head), call, payload_};
      send_to(message.relay, message.kind, parts);
    }
  }

 private:
  void take(Id peer, Kind kind, Bytes message) override {
    wire::CastOrigin::Effects effects;
    if (kind == Kind::kGathered) {
      const auto gathered = wire::read_gathered(message);
      for (const wire::Group& group : gathered->groups) {
        origin_.gathered(peer, gathered->number, group.status, group.ranks, effects);
        if (group.status < wire::k_missed) answers_ += group.ranks.size();
      }
      last_ = shared_.world.now();
    } else if (kind == Kind::kDone) {
      const auto done = wire::read_done(message);
      for (const auto number : done->numbers) origin_.done(peer, number, effects);
    }
    for (const auto& there : effects.there) lanes_[there.to.proc - kProcs].there(there.number);
  }

  [[nodiscard]] wire::CastRoute route() const {
    std::vector<std::uint64_t> relays(depths_.size());
    for (std::size_t place = 0; place < relays.size(); ++place) relays[place] = kAgents + place;
    std::vector<wire::CastRoute::Member> members;
    members.reserve(plan_.procs);
    for (std::size_t rank = 0; rank < plan_.procs; ++rank) {
      members.push_back(
          {{.proc = kProcs + rank, .actor = 7, .rank = static_cast<std::uint32_t>(rank)},
           rank / plan_.per_host});
    }
    return {origin_, hops_, relays, std::move(members)};
  }

  const ScalePlan plan_;
  wire::CastOrigin origin_;
  std::optional<wire::CastRoute> route_;
  std::vector<wire::SendLane> lanes_;
  std::vector<wire::Hop> hops_;
  std::vector<std::size_t> depths_;  // by place
  std::vector<std::byte> payload_;
  std::uint64_t answers_ = 0;
  Instant last_{};
};

struct Sum {
  std::uint64_t bytes = 0, frames = 0;
};

}  // namespace

ScaleRow scale(const ScalePlan& plan) {
  const std::size_t hosts = (plan.procs + plan.per_host - 1) / plan.per_host;
  World world(plan.seed);
  Network network(world, {.local_least = microseconds(5), .local_most = microseconds(10),
                          .far_least = microseconds(25), .far_most = microseconds(50),
                          .window = 4U << 20, .bytes_per_second = kBytesPerSecond,
                          .per_write = kPerMessage});
  History history;
  // Links are quiet for longer than a cast takes: beats are no part of it.
  Shared shared{.world = world, .network = network, .history = history,
                .pace = {.beat = std::chrono::hours(1)}};
  network.place(kOrigin, 0);
  Origin origin(shared, plan, hosts);
  std::vector<std::unique_ptr<Relay>> relays;
  std::vector<std::unique_ptr<Leaf>> leaves;
  for (std::size_t host = 0; host < hosts; ++host) {
    network.place(kAgents + host, static_cast<Host>(host + 1));
    relays.push_back(
        std::make_unique<Relay>(shared, kAgents + host, static_cast<Host>(host + 1)));
  }
  for (std::size_t rank = 0; rank < plan.procs; ++rank) {
    const std::size_t host = rank / plan.per_host;
    network.place(kProcs + rank, static_cast<Host>(host + 1));
    leaves.push_back(std::make_unique<Leaf>(shared, kProcs + rank, static_cast<Host>(host + 1),
                                            plan.equal));
    relays[host]->meet(kProcs + rank);
  }
  for (const wire::Hop& hop : origin.hops()) {
    origin.meet(kAgents + hop.place);
    if (hop.from != wire::k_root) relays[hop.from]->meet(kAgents + hop.place);
  }
  (void)world.run_until(world.now() + seconds(2));

  const auto sum = [&network](const Node& node) {
    const Network::Traffic& traffic = network.traffic(node.id());
    return Sum{traffic.bytes_in + traffic.bytes_out, node.count().frames_in + node.count().frames_out};
  };
  ScaleRow row{.plan = plan, .hosts = hosts, .depth = origin.depth()};
  Instant begin{};
  Sum client{};
  std::vector<Sum> before(hosts);
  for (std::size_t cast = 0; cast < plan.casts; ++cast) {
    begin = world.now();
    client = sum(origin);
    for (std::size_t host = 0; host < hosts; ++host) before[host] = sum(*relays[host]);
    origin.cast();
    (void)world.run_until(world.now() + seconds(2));
  }
  row.in_order = true;
  for (const auto& leaf : leaves) {
    row.all_have_it = std::max(row.all_have_it, leaf->last() - begin);
    row.in_order = row.in_order && leaf->in_order() && leaf->handled() == plan.casts;
  }
  row.all_answered = origin.last() - begin;
  row.answers = origin.answers();
  const Sum end = sum(origin);
  row.client_bytes = end.bytes - client.bytes;
  row.client_frames = end.frames - client.frames;
  for (std::size_t host = 0; host < hosts; ++host) {
    const Sum now = sum(*relays[host]);
    const std::uint64_t bytes = now.bytes - before[host].bytes;
    const std::uint64_t frames = now.frames - before[host].frames;
    row.agent_bytes.most = std::max(row.agent_bytes.most, bytes);
    row.agent_frames.most = std::max(row.agent_frames.most, frames);
    row.agent_bytes.mean += static_cast<double>(bytes) / static_cast<double>(hosts);
    row.agent_frames.mean += static_cast<double>(frames) / static_cast<double>(hosts);
  }
  return row;
}

}  // namespace monarch::sim
