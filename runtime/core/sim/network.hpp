// The network between simulated processes: stream connections that deliver in order or end, as TCP
// does, over hosts that can be cut off from each other in either direction, stop, or lose power.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "sim/world.hpp"

namespace monarch::sim {

using Id = std::uint64_t;    // of a process
using Host = std::uint32_t;  // a place in the network
using Conn = std::uint64_t;

// A process, as the network sees it. Nothing of this is called while it is stopped, or once it ended.
class Process {
 public:
  virtual ~Process() = default;
  virtual void connected(Conn conn) = 0;
  virtual void refused(Conn conn) = 0;
  virtual void accepted(Conn conn) = 0;
  virtual void received(Conn conn, base::Bytes bytes) = 0;
  virtual void writable(Conn conn) = 0;
  virtual void ended(Conn conn) = 0;
};

struct NetworkOptions {
  Duration local_least = microseconds(5), local_most = microseconds(40);
  Duration far_least = microseconds(50), far_most = milliseconds(2);
  std::size_t window = 64U << 10;      // bytes of a direction that are on the way at most
  std::uint64_t bytes_per_second = 0;  // of a process's sending and of its receiving; 0: no limit
  Duration per_write{};                // what a process has to do besides for each piece, each way
  bool repeat_bytes = false;  // a broken network: what arrives now and then arrives twice
};

class Network {
 public:
  Network(World& world, const NetworkOptions& options) : world_(world), options_(options) {}

  // Where a process is going to be; until add() nobody is there.
  void place(Id id, Host host) { members_[id].host = host; }
  void add(Id id, Process* process) {
    members_.at(id).process = process;
    members_.at(id).dead = false;
  }
  // It ends at once. Its host's kernel closes its connections, unless that ended with it.
  void kill(Id id);
  void stop(Id id);
  void go_on(Id id);
  [[nodiscard]] bool alive(Id id) const;
  [[nodiscard]] bool stopped(Id id) const;
  [[nodiscard]] Host host_of(Id id) const { return members_.at(id).host; }
  // Runs `what` after `delay`, later if the process is stopped then, never if it has ended.
  void later(Id id, Duration delay, std::function<void()> what);

  // The outcome is told to `from`: connected() or refused(), or nothing while nobody answers.
  Conn connect(Id from, Id to);
  [[nodiscard]] std::size_t write(Conn conn, Id from, base::Bytes bytes);
  void close(Conn conn, Id from);
  // The connection is reset: of what is on the way any number of bytes still arrive.
  void reset(Conn conn);
  [[nodiscard]] std::vector<Conn> between_hosts() const;

  void cut(Host from, Host to) { cuts_.insert({from, to}); }
  void heal(Host from, Host to);
  [[nodiscard]] bool is_cut(Host from, Host to) const { return cuts_.contains({from, to}); }
  void power_off(Host host);

  struct Traffic {
    std::uint64_t bytes_out = 0, bytes_in = 0;
  };
  [[nodiscard]] const Traffic& traffic(Id id) const { return members_.at(id).traffic; }

 private:
  struct Member {
    Host host = 0;
    Process* process = nullptr;
    bool dead = true;
    bool stopped = false;
    std::vector<std::function<void()>> held = {};
    Traffic traffic = {};
    Instant sends = {}, takes = {};  // until when its wire is busy
  };
  struct Way {                         // of one direction
    std::deque<std::vector<std::byte>> chunks;
    std::size_t bytes = 0;             // of these
    Instant last{};                    // nothing arrives before what was sent before it
    bool stuck = false;                // at a cut
    bool full = false;                 // the writer was told so
    bool fin = false;                  // nothing more is written
  };
  struct Connection {
    Id ends[2] = {0, 0};
    Way ways[2];                       // ways[i] starts at ends[i]
    bool open[2] = {false, false};     // as each end sees it
  };

  void deliver(Id id, std::function<void()> what);
  void knock(Conn conn);
  void arrive(Conn conn, int side);
  void arrive_all(Conn conn, int side);
  void end_at(Conn conn, int side, Duration delay);
  void forget(Conn conn);
  [[nodiscard]] bool is_far(const Connection& connection) const;
  [[nodiscard]] bool blocked(const Connection& connection, int side) const;
  [[nodiscard]] Duration delay(const Connection& connection);
  [[nodiscard]] Instant arrival(Connection& connection, int side, std::size_t size);
  [[nodiscard]] static int side_of(const Connection& connection, Id id) {
    return connection.ends[0] == id ? 0 : 1;
  }

  World& world_;
  NetworkOptions options_;
  std::unordered_map<Id, Member> members_;
  std::map<Conn, Connection> connections_;
  std::set<std::pair<Host, Host>> cuts_;
  std::set<Host> dark_;  // without power
  Conn next_ = 1;
};

}  // namespace monarch::sim
