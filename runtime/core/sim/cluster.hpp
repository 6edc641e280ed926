// A simulated cluster: a client, hosts with an agent each, and the processes of one mesh, which are
// replaced where they die. All of them send numbered messages and calls to each other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "sim/node.hpp"
#include "sim/relaying.hpp"
#include "wire/cast_lane.hpp"
#include "wire/cast_origin.hpp"
#include "wire/cast_route.hpp"

namespace monarch::sim {

class Client;
class Cluster;

// A process that sends and handles numbered messages.
class Talker : public Node {
 public:
  Talker(Cluster& cluster, Id id, Host host);

 protected:
  // Of what is said in control messages; numbers of 8 bytes follow.
  enum class Word : std::uint64_t {
    kSpawn,    // to an agent: processes
    kStarted,  // by an agent: process
    kEnd,      // to an agent: processes
    kEnded,    // by an agent: process
    kHung,     // by an agent: process
    kFence,    // to a worker: processes
    kMember,   // to a worker: rank, process, the one whose place it takes
    kLink,     // to an agent: another one, which is to be below it
    kFate,     // to the client: a process that cannot be heard any more
    kDead,     // to a worker: a process and whether it is known to have died
  };

  void tell(Id peer, Word word, std::span<const std::uint64_t> body);
  void say(Id peer, std::size_t size);
  void call(Id peer, std::size_t size);
  // As fail(), and the calls to it end.
  void bury(Id peer);

  void take(Id peer, wire::Kind kind, base::Bytes message) override;
  virtual void told(Id peer, Word word, std::span<const std::uint64_t> body) = 0;
  virtual void handled(Id /*from*/) {}
  // A call has come directly, and can be handled when it is its turn.
  virtual void arrived(Id peer, std::uint64_t inbox, std::uint64_t number);
  void handle(Id peer, std::uint64_t inbox, std::uint64_t number);
  virtual void before_message(Id /*peer*/) {}
  // A message takes its number among those of this pair.
  [[nodiscard]] std::uint64_t number(Id peer);
  void message(Id peer, std::uint64_t inbox, std::size_t size);
  // Of a call that is answered, by whichever way.
  void open_call(std::uint64_t inbox, Id peer);
  void answered(std::uint64_t inbox, Id peer);
  [[nodiscard]] std::uint64_t next_inbox() noexcept { return next_inbox_++; }
  [[nodiscard]] bool bent(Bend bend) const noexcept { return shared_.bend == bend; }

  Cluster& cluster_;

 private:
  std::map<Id, std::uint64_t> sent_;
  std::map<std::uint64_t, Id> calls_;  // by inbox
  std::uint64_t next_inbox_ = 1;
};

class Agent final : public Talker {
 public:
  Agent(Cluster& cluster, Id id, Host host);
  // A process that it started has ended: the kernel says so.
  void child_ended(Id proc);
  [[nodiscard]] const std::set<Id>& children() const noexcept { return children_; }

 private:
  void told(Id peer, Word word, std::span<const std::uint64_t> body) override;
  void lost(Id peer) override;
  void silent(Id peer, bool is) override;
  void take(Id peer, wire::Kind kind, base::Bytes message) override;
  [[nodiscard]] bool may_dial(Id peer) const override;

  std::set<Id> children_;
  Relaying casts_;
};

class Worker final : public Talker {
 public:
  Worker(Cluster& cluster, Id id, Host host, Id agent);

 private:
  void told(Id peer, Word word, std::span<const std::uint64_t> body) override;
  void take(Id peer, wire::Kind kind, base::Bytes message) override;
  void arrived(Id peer, std::uint64_t inbox, std::uint64_t number) override;
  void handled(Id from) override;
  void lost(Id peer) override;
  void silent(Id peer, bool is) override;
  [[nodiscard]] bool may_dial(Id peer) const override;
  void quit();
  void take_delivery(Id from, base::Bytes message);

  // A message of the client, whichever way it came.
  struct Item {
    std::uint64_t inbox = 0;   // of a direct call
    std::uint64_t number = 0;  // among those of the pair
    std::uint64_t cast = 0;
    std::uint32_t rank = 0;
    bool answers = false;
  };
  void release(const std::vector<Item>& items);
  void answer(const Item& item);
  wire::ReceiveLane<Item, Item> lane_;

  Id agent_;
  std::map<std::uint64_t, Id> members_;  // by rank
  std::set<Id> silent_;
};

class Client final : public Talker {
 public:
  Client(Cluster& cluster, Id id, Host host, std::size_t ranks, std::size_t hosts);
  void begin();
  void call_all();
  [[nodiscard]] const std::vector<Id>& ranks() const noexcept { return ranks_; }

 private:
  struct Proc {
    std::size_t rank = 0;
    Id agent = 0;
    bool closed = false;
    bool exited = false;
    bool waits = false;  // for the second sign
    bool dead = false;
    std::set<Id> curious = {};
  };

  void told(Id peer, Word word, std::span<const std::uint64_t> body) override;
  void lost(Id peer) override;
  void silent(Id peer, bool is) override;
  [[nodiscard]] bool may_dial(Id) const override { return true; }
  void attach();
  void spawn(std::size_t rank, Id replaces);
  void sign(Id proc);
  void died(Id proc);
  void host_lost(Id agent);
  void tell_all(Word word, std::span<const std::uint64_t> body, Id but = 0);
  void work();
  void cast(bool answers);
  [[nodiscard]] wire::CastRoute route() const;
  void take(Id peer, wire::Kind kind, base::Bytes message) override;
  void before_message(Id peer) override;
  void carry_out(const wire::CastOrigin::Effects& effects);
  void cast_answered(std::uint64_t cast, std::uint32_t rank);
  void close_cast(std::uint64_t cast);
  void forget_casts(Id proc);
  void settle_casts(Id peer, bool hop);

  static constexpr std::size_t k_fan_out = 2;  // of the tree of agents

  std::vector<Id> ranks_;
  std::map<Id, Proc> procs_;
  std::set<Id> agents_;  // that are not lost
  std::set<Id> silent_;
  std::size_t hosts_;    // that the job is to have

  wire::CastOrigin origin_;
  std::optional<wire::CastRoute> route_;             // of the last cast
  std::vector<std::pair<std::size_t, Id>> group_;    // that it leads to: ranks and processes
  std::map<Id, wire::SendLane> lanes_;
  std::vector<Id> relays_;                                      // by place in the tree
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::pair<std::uint64_t, Id>> casts_;  // calls
  std::map<std::uint64_t, bool> flying_;                        // by number; whether it is answered
};

struct Plan {
  std::uint64_t seed = 1;
  bool liveness = false;
  std::size_t hosts = 4;
  std::size_t ranks = 8;
  Duration busy = seconds(20);   // with work, and faults as the mode has it
  Duration rest = seconds(12);   // without faults, then without work
  wire::Pace pace = {};
  Bend bend = Bend::kNone;
  NetworkOptions network = {};
};

class Cluster {
 public:
  explicit Cluster(const Plan& plan);

  void run();

  [[nodiscard]] const History& history() const noexcept { return history_; }
  [[nodiscard]] History take_history() noexcept { return std::move(history_); }
  [[nodiscard]] std::uint64_t steps() const noexcept { return world_.steps(); }
  [[nodiscard]] const Client& client() const noexcept { return *client_; }

  // What the processes ask of it.
  [[nodiscard]] Shared& shared() noexcept { return shared_; }
  [[nodiscard]] Random& random() noexcept { return world_.random; }
  [[nodiscard]] Id fresh(Host host);
  [[nodiscard]] Id add_host();
  void start_worker(Id id, Agent& agent);
  void kill(Id id);
  void power_off(Host host);
  [[nodiscard]] bool works() const noexcept { return world_.now() < work_ends_; }
  [[nodiscard]] bool is_agent(Id id) const { return agents_.contains(id); }
  [[nodiscard]] Id client_id() const noexcept { return client_id_; }
  [[nodiscard]] std::size_t some_size();
  // What number a cast has among the messages to a process.
  std::map<std::pair<std::uint64_t, Id>, std::uint64_t> cast_numbers;

 private:
  friend class Nemesis;

  void ended(Id id);

  const Plan plan_;
  World world_;
  Network network_;
  History history_;
  Shared shared_;
  Instant work_ends_{};
  std::uint64_t ids_ = 0;
  Host hosts_ = 0;
  Id client_id_ = 0;
  std::map<Id, std::unique_ptr<Agent>> agents_;
  std::map<Id, std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Client> client_;
};

}  // namespace monarch::sim
