// A simulated process: links to its peers, made of the product's own state machines. What is
// simulated of the engine and the gate is only what carries bytes and effects between these.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/history.hpp"
#include "sim/network.hpp"
#include "wire/message.hpp"
#include "wire/session.hpp"
#include "wire/watch.hpp"

namespace monarch::sim {

// A machine that is bent on purpose, to see the checker fail.
enum class Bend {
  kNone,
  kTwice,          // a frame is handed out twice now and then
  kSkip,           // a frame is dropped now and then
  kForgetTaken,    // after a break nobody says what it has taken
  kCastTwice,      // a cast that comes again is handled again
  kNoBarrier,      // nothing keeps a message behind a cast that was sent before it
  kCastLost,       // what a relay misses is not sent again
  kDropReply,      // an answer is forgotten now and then
  kNoFence,        // what is declared dead is listened to
  kTellTwice,      // a death is told again when its second sign comes
  kTellNobody,     // a death is noticed and not told
  kKeepCalls,      // calls to what is dead are not ended
  kNoBeats,        // silence is not noticed
  kHasty,          // a connection that breaks is a death
};

struct Shared {
  World& world;
  Network& network;
  History& history;
  wire::Pace pace;
  Bend bend = Bend::kNone;

  void note(What what, Id at, Id other, std::uint64_t number = 0, std::string_view text = {}) {
    history.push_back({world.now(), what, at, other, number, text});
  }
};

class Node : public Process {
 public:
  Node(Shared& shared, Id id, Host host) : shared_(shared), id_(id), host_(host) {
    shared.network.add(id, this);
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Begins to look at its peers.
  void start();

  [[nodiscard]] Id id() const noexcept { return id_; }
  [[nodiscard]] Host host() const noexcept { return host_; }
  [[nodiscard]] bool linked(Id peer) const;
  [[nodiscard]] bool fenced(Id peer) const;
  [[nodiscard]] bool broken(Id peer) const;
  // Whether casts go by its link.
  [[nodiscard]] bool usable(Id peer) const;
  struct Count {
    std::uint64_t frames_out = 0, frames_in = 0;
  };
  [[nodiscard]] const Count& count() const noexcept { return count_; }

  void connected(Conn conn) override;
  void refused(Conn conn) override;
  void accepted(Conn conn) override;
  void received(Conn conn, base::Bytes bytes) override;
  void writable(Conn conn) override;
  void ended(Conn conn) override;

 protected:
  void send(Id peer, wire::Kind kind, std::span<const base::Bytes> parts);
  // The link is to end as if it had ended by itself.
  void give_up(Id peer);
  // The peer is dead: nothing of it is taken any more.
  void fail(Id peer);
  void later(Duration delay, std::function<void()> what) {
    shared_.network.later(id_, delay, std::move(what));
  }

  virtual void take(Id peer, wire::Kind kind, base::Bytes message) = 0;
  virtual void lost(Id peer) = 0;
  virtual void silent(Id peer, bool is) = 0;
  // Whether this process can dial the peer at all.
  [[nodiscard]] virtual bool may_dial(Id peer) const = 0;

  Shared& shared_;

 private:
  struct Dial {
    bool going_on = false;
    Instant until{};
    Conn conn = 0;  // of the try under way
    Duration pause = milliseconds(1);
    std::uint64_t tries = 0;
  };
  struct Peer {
    wire::Watch watch;
    std::unique_ptr<wire::Session> session;
    Conn conn = 0;
    std::optional<Dial> dial;
    struct Parked {
      wire::Kind kind;
      std::vector<std::byte> message;
    };
    std::deque<Parked> parked;
  };

  void tick();
  void dial(Id id, Peer& peer, bool going_on);
  void knock(Id id, Peer& peer);
  void again(Id id, Peer& peer);
  void answered(Id id, Conn conn, base::Bytes bytes);
  void guest(Conn conn, base::Bytes bytes);
  void adopt(Id id, Conn conn, wire::Meeting how);
  void queue(Peer& peer, wire::Kind kind, std::span<const base::Bytes> parts);
  void flush(Peer& peer);
  void read(Id id, base::Bytes bytes);
  void suspend(Id id, Peer& peer);
  void lose(Id id, Peer& peer);
  void drop(Peer& peer);
  [[nodiscard]] bool bent(Bend bend) const noexcept { return shared_.bend == bend; }
  [[nodiscard]] bool is_far(Id peer) const { return shared_.network.host_of(peer) != host_; }

  const Id id_;
  const Host host_;
  std::map<Id, Peer> peers_;
  std::map<Conn, Id> conns_;                       // adopted ones, and those of dials
  std::map<Conn, std::vector<std::byte>> guests_;  // what they have said so far
  wire::Rhythm rhythm_;
  Count count_;
};

}  // namespace monarch::sim
