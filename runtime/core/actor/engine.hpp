// The runtime of one process: links to its peers, the mailboxes of its actors, the inboxes of its
// calls, and the threads that wait for any of them.
//
// There is no I/O thread on the path of a call. Of the threads that wait, one leads: it polls all
// links and hands out what it reads; the others sleep until they are handed something or take the
// lead over. A thread that found work for itself leaves the lead free while it works. The
// caretaker, the one thread of the engine's own, takes the lead when nobody polled for a tick;
// besides it keeps the timers: heartbeats, delayed writes, workers that are stuck in an endpoint.
//
// Nothing here calls back into its user: threads come and wait (Worker next(), wait(), control()).
// One lock guards all state; it is never held while a thread waits or blocks.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actor/board.hpp"
#include "actor/casting.hpp"
#include "actor/event.hpp"
#include "actor/inbox.hpp"
#include "actor/mailbox.hpp"
#include "actor/peer.hpp"
#include "actor/shipping.hpp"
#include "base/clock.hpp"
#include "net/arena.hpp"
#include "net/link.hpp"
#include "net/mappings.hpp"
#include "net/poller.hpp"
#include "net/spin.hpp"
#include "wire/watch.hpp"

namespace monarch::actor {

using Lock = std::unique_lock<std::mutex>;

// How a wait ended.
enum class Waited { kDone, kTimeout, kSignal, kStopped };

struct Message {
  std::string_view endpoint = {};
  base::Bytes data = {};
  std::span<const base::Bytes> buffers = {};
  std::uint64_t sender = 0;
  std::string_view extent = {};
  std::uint16_t flags = 0;
  Shipping* shipping = nullptr;  // of a large one: ship() was called for its receivers
};

struct Limits {
  // Bytes in flight per receiver. The same in all processes: an eighth of it at a time is given back.
  std::size_t window = 16U << 20;
  std::uint32_t workers = 32;      // threads made for actors as they come
  std::uint32_t loops = 32;        // of event loops, for actors that need one
  std::size_t segments = 256;      // of shared memory, for large messages; 0: none
  base::Duration heartbeat = std::chrono::milliseconds(500);
  int misses = 4;
  base::Duration keep_segments = std::chrono::seconds(30);  // that none of was used
  std::size_t fan_out = 16;   // of the tree that casts go down
  std::size_t cast_from = 8;  // receivers of a message, for it to be one
};

class Engine {
 public:
  explicit Engine(std::uint64_t proc, Limits limits = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  [[nodiscard]] std::uint64_t proc() const noexcept { return proc_; }
  void stop();

  // Links. The descriptor is the engine's from here on, also when it is refused.
  [[nodiscard]] base::Result<void> add_link(std::uint64_t peer, int fd,
                                            std::unique_ptr<net::TlsStream> tls = nullptr,
                                            bool session = false);
  // Goes on with a session whose connection has ended, or is about to be found ended. Fails where
  // there is no such session.
  [[nodiscard]] base::Result<void> resume_link(std::uint64_t peer, int fd,
                                               std::unique_ptr<net::TlsStream> tls);
  // As resume_link(), with a peer that never knew of the session.
  [[nodiscard]] base::Result<void> begin_link_again(std::uint64_t peer, int fd,
                                                    std::unique_ptr<net::TlsStream> tls);
  [[nodiscard]] bool is_broken(std::uint64_t peer);
  // Looks at a peer this often, in place of as often as the limits say.
  void set_heartbeat(std::uint64_t peer, base::Duration heartbeat, int misses);
  // What to do with a connection of this peer: wire::Watch::meet.
  [[nodiscard]] wire::Meeting meet(std::uint64_t peer, bool going_on, bool dialling, bool stands);
  // As if the link had ended by itself.
  void lose_link(std::uint64_t peer, std::string why);
  void close_link(std::uint64_t peer);
  [[nodiscard]] bool has_link(std::uint64_t peer);
  void fail_peer(std::uint64_t peer, std::string payload);
  // Gives a process on this host a connection that it is to go on with, and what to know of it.
  // The descriptor is the engine's from here on. Fails without a link that passes descriptors.
  [[nodiscard]] base::Result<void> hand_over(std::uint64_t peer, int fd, base::Bytes data);
  [[nodiscard]] base::Result<void> watch(int fd, std::uint64_t token);
  void unwatch(int fd);

  // Blocks for the next event; none after stop(), and after a signal (`signal` is set then).
  [[nodiscard]] std::optional<Event> control();
  // Gives what the process has failed with, where it has, and nobody will hear of it.
  std::shared_ptr<const std::string> tell(std::uint64_t peer, base::Bytes data);

  // Sending. Each fails when the message is above the limit of a frame.
  [[nodiscard]] std::shared_ptr<const Targets> targets(std::span<const std::uint64_t> procs,
                                                       std::span<const std::uint64_t> actors);
  [[nodiscard]] base::Result<std::shared_ptr<Inbox>> call(
      const std::shared_ptr<const Targets>& targets, const Message& message);
  // Replies go to `inbox` of `reply_proc`; with inbox 0 none is wanted. The first target has rank
  // `rank`, the others follow.
  [[nodiscard]] base::Result<void> cast(const Targets& targets, const Message& message,
                                        std::uint64_t reply_proc, std::uint64_t inbox,
                                        std::uint32_t rank);
  [[nodiscard]] base::Result<void> post(std::uint64_t proc, std::uint64_t inbox, std::uint32_t rank,
                                        std::uint8_t status, base::Bytes data,
                                        std::span<const base::Bytes> buffers,
                                        Shipping* shipping = nullptr);
  // As post(), by the actor `sender`: it is given back (kReturned) where there is no such inbox.
  [[nodiscard]] base::Result<void> post_from(std::uint64_t sender, std::uint64_t proc,
                                             std::uint64_t inbox, std::uint32_t rank, Status status,
                                             base::Bytes data, std::span<const base::Bytes> buffers,
                                             Shipping* shipping = nullptr);

  // Of a large message: before it is sent, ship() brings its parts to the receivers, again after
  // kSignal, until kDone; afterwards offer() prepares for the next one, or abandon() takes back
  // what was shipped of a message that is not sent.
  [[nodiscard]] Waited ship(Shipping& shipping);
  void offer(const Shipping& shipping);
  void abandon(Shipping& shipping);
  // Drops the segments that are kept for the next one.
  void trim();
  [[nodiscard]] net::Arena::Usage segments() const { return arena_.usage(); }
  [[nodiscard]] std::size_t borrowed() const { return mappings_.loans(); }

  // Whether every receiver has room for `bytes` more; wait_credit() blocks until it has.
  [[nodiscard]] bool has_credit(const Targets& targets);
  [[nodiscard]] Waited wait_credit(const Targets& targets);

  // Casts. A process can be reached by way of the agent `relay` of its host.
  void set_relay(std::uint64_t proc, std::uint64_t relay);
  // Pairs of agents between which there should be a link, from the first to the second, and
  // whether there is one.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint64_t>> wanted_edges();
  void set_edge(std::uint64_t from, std::uint64_t to, bool linked);
  // Casts that are under way: as their origin, and as a relay.
  [[nodiscard]] std::pair<std::size_t, std::size_t> casts();

  // Receiving.
  [[nodiscard]] std::shared_ptr<Inbox> open_inbox(bool once);
  [[nodiscard]] Waited wait(Inbox& inbox, std::size_t count, std::optional<base::Instant> deadline);
  [[nodiscard]] std::optional<Arrival> arrival(const Inbox& inbox, std::size_t index);
  [[nodiscard]] std::optional<Arrival> take(Inbox& inbox);
  void set_fail_fast(Inbox& inbox, bool on);
  [[nodiscard]] std::size_t arrived(const Inbox& inbox);
  [[nodiscard]] std::vector<std::uint32_t> missing(const Inbox& inbox);
  [[nodiscard]] bool subscribe(Inbox& inbox, Worker& worker, std::size_t count, Token token);
  [[nodiscard]] bool unsubscribe(Inbox& inbox, Token token);
  void cancel(Inbox& inbox);
  void close_inbox(Inbox& inbox);

  // Actors of this process. set_state gives back the state it replaces.
  Token set_state(std::uint64_t actor, Token state);
  Token close_actor(std::uint64_t actor, std::uint8_t status, std::string payload);
  [[nodiscard]] base::Result<void> reply(const std::shared_ptr<Request>& request,
                                         std::uint8_t status, base::Bytes data,
                                         std::span<const base::Bytes> buffers,
                                         Shipping* shipping = nullptr);
  void finish(const std::shared_ptr<Request>& request);
  // Endpoints being handled.
  [[nodiscard]] std::vector<std::string> running(std::uint64_t actor);
  // Why `actor` does not get on with a call: the one with the inbox `inbox` of process `proc`, or
  // any when that is 0. None when it is not this that holds the call up.
  [[nodiscard]] std::optional<Blocked> blocked(std::uint64_t actor, std::uint64_t proc,
                                               std::uint64_t inbox);
  // Keeps a page of `fd` up to date with what is being handled. The descriptor stays the caller's.
  void keep_board(int fd, std::size_t page);

  // Threads.
  [[nodiscard]] Worker& main_worker();
  [[nodiscard]] Worker& foreign_worker();
  // The next thing for `worker`, or how the wait for it ended.
  [[nodiscard]] std::optional<Work> next_ready(Worker& worker);
  [[nodiscard]] std::optional<Work> next(Worker& worker, std::optional<base::Instant> deadline,
                                         Waited& ended);
  [[nodiscard]] base::Result<void> attach(Worker& worker, int fd);

 private:
  static constexpr std::size_t k_graves = 4096;  // older ones answer as actors that never were
  static constexpr base::Duration k_tick = std::chrono::milliseconds(1);
  static constexpr base::Duration k_flush_delay = std::chrono::microseconds(150);
  static constexpr base::Duration k_stuck = std::chrono::milliseconds(100);
  static constexpr base::Duration k_long = std::chrono::milliseconds(4);  // that nobody polls

  // peers and links (links.cpp)
  Peer& peer_of(std::uint64_t id);
  void come_back(std::uint64_t id);
  void read_pending(Peer& peer, net::Link& link);
  void receive(Peer& peer, net::Link& link);
  void suspend(Peer& peer, const std::string& why);
  [[nodiscard]] base::Result<void> reconnect(std::uint64_t id, int fd,
                                             std::unique_ptr<net::TlsStream> tls, bool again);
  [[nodiscard]] std::optional<base::Instant> end_broken(base::Instant now);
  void lose(Peer& peer, std::string why);
  void drop_links(Peer& peer);
  void cut_links();
  void mark(Inbox& inbox, std::uint32_t rank, const Peer& peer) const;
  [[nodiscard]] bool was_sent(const Inbox& inbox, std::uint32_t rank, const Peer& peer) const;
  std::optional<std::uint64_t> token_of(int fd) const;
  void push_event(Event event);

  // sending (send.cpp)
  base::Result<void> send(Peer& peer, wire::Kind kind, base::Bytes head, std::string_view endpoint,
                          std::string_view extent, base::Bytes data,
                          std::span<const base::Bytes> buffers);
  void after_send(Peer& peer);
  void flush(Peer& peer);
  void flush_all();
  void delay_flush(base::Instant now);
  base::Result<void> send_call(const Target& target, std::uint32_t rank, const Message& message,
                               std::uint64_t reply_proc, std::uint64_t inbox, std::size_t cost,
                               std::size_t index);
  void send_reply(std::uint64_t proc, const wire::Reply& reply, base::Bytes data,
                  std::span<const base::Bytes> buffers, base::Result<void>* outcome,
                  Shipping* shipping = nullptr);
  // Sends what says where the parts of the next message are; false when they were lost on the way.
  [[nodiscard]] bool send_attachment(Peer& peer, const Shipping& shipping, const Shipment& shipment);
  [[nodiscard]] static bool travels_apart(const Shipping* shipping, std::size_t index);
  void give_credit(std::uint64_t proc, std::uint64_t target, std::size_t bytes);
  void give_back_credit(Peer& peer, std::uint64_t target, std::size_t bytes);
  [[nodiscard]] bool has_credit_locked(const Targets& targets) const;
  void credit_came();

  // casts (casting.cpp)
  [[nodiscard]] Way& way_to(const Targets& targets, std::uint32_t rank);
  void send_by_tree(const Targets& targets, const Message& message, std::uint64_t reply_proc,
                    std::uint64_t inbox, std::uint32_t rank, std::size_t cost,
                    std::vector<bool>& by_tree);
  void send_barrier(Peer& peer);
  [[nodiscard]] bool is_linked(std::uint64_t id) const;
  void carry_out(const wire::CastOrigin::Effects& effects);
  void pass_on(const wire::CastRelay::Effects& effects, const wire::Cast& cast, base::Bytes call,
               std::span<const base::Bytes> buffers);
  std::optional<base::Instant> expire_casts(base::Instant now);
  void lose_casts(Peer& peer, bool stalled);
  bool handle_cast(Peer& peer, wire::Frame& frame);
  void take_gathered(const Peer& relay, const wire::Gathered& gathered);

  // casts that come here (delivering.cpp)
  bool take_delivery(Peer& peer, wire::Frame& frame);
  void release(Peer& peer, Lane::Out& out);
  void answer(const Request& request, std::uint8_t status, base::Bytes data,
              std::span<const base::Bytes> buffers, base::Result<void>* outcome,
              Shipping* shipping = nullptr);
  void forgo(const Request& request);
  void send_answer(std::uint64_t via, const wire::Answer& answer, base::Bytes data);

  // receiving (receive.cpp)
  static std::shared_ptr<Request> make_request(const Peer& sender, const wire::Call& call,
                                               std::optional<Payload>& attached,
                                               wire::Frame& frame, base::Bytes data);
  bool handle_frame(Peer& peer, net::Link& link, wire::Frame& frame);
  void deliver(std::shared_ptr<Request> request);
  void refuse(const Request& request, std::uint8_t status, base::Bytes payload);
  void hold(std::shared_ptr<Request> request);
  std::optional<base::Instant> give_up(base::Instant now);
  bool arrive(std::uint64_t inbox, Arrival arrival);  // false: there is no such inbox
  void give_back(std::uint64_t proc, const wire::Call& call, std::uint64_t sender_proc,
                 std::uint8_t status);
  void settle(Inbox& inbox);
  void retire(const std::shared_ptr<Request>& request);
  void bury(Mailbox& mailbox);
  std::shared_ptr<Outlet> outlet_of(Peer& peer, std::uint64_t actor);
  void handle_cancel(std::uint64_t proc, const wire::Cancel& cancel);
  void make_ready(Mailbox& mailbox);
  Worker& home_for(std::uint16_t flags);
  Worker& add_worker();
  std::optional<Work> pop(Worker& worker);
  std::optional<Work> take_work(Worker& worker);

  // large messages (shipping.cpp)
  Waited wait_link(Lock& lock, Peer& peer);
  Waited send_chunks(Shipping& shipping, const Shipment& shipment, std::uint64_t proc);
  void exhausted(const std::string& why);
  void clear_away(net::Leftovers left);
  void trim_segments(base::Instant now);
  void forget_payloads(Peer& peer);
  void return_segments();
  bool handle_payload(Peer& peer, net::Link& link, const wire::Frame& frame);
  bool attach_payload(Peer& peer, net::Link& link, base::Bytes message);
  bool take_chunk(Peer& peer, base::Bytes message);

  void halt();

  // waiting (wait.cpp)
  template <typename Ready>
  Waited wait_for(Lock& lock, Waiter& waiter, std::optional<base::Instant> deadline, Ready ready,
                  std::vector<Waiter*>& list);
  net::Polled poll_once(Lock& lock, std::optional<base::Instant> deadline, bool spin);
  void dispatch(const std::vector<net::Ready>& events);
  Waited wait_space(Lock& lock, const std::function<bool()>& ready);
  void release_lead();
  void offer_lead();
  void notify(Waiter& waiter);
  void wake_worker(Worker& worker);
  void wake_caretaker();
  void look_by(base::Instant due);  // the caretaker is to look at its timers, then or earlier
  void update_writing(Peer& peer);
  [[nodiscard]] Worker* worker_of_this_thread();
  void find_stuck();

  // the caretaker (caretaker.cpp)
  void caretaker();
  void sweep(Lock& lock);
  base::Instant run_timers(base::Instant now);
  base::Instant relieve(base::Instant now);
  void arm_relief(const Worker& worker);
  void beat(base::Instant now);

  const std::uint64_t proc_;
  const Limits limits_;
  const wire::Pace pace_;
  [[nodiscard]] const wire::Pace& pace_of(const Peer& peer) const noexcept {
    return peer.pace ? *peer.pace : pace_;
  }
  base::SteadyClock clock_;
  std::mutex mutex_;
  bool stopping_ = false;

  net::Poller poller_;
  net::Spin spin_;
  std::vector<net::Ready> events_;

  std::unordered_map<std::uint64_t, std::unique_ptr<Peer>> peers_;
  std::unordered_map<std::uint64_t, Watched> watched_;  // by the poller's token
  std::uint64_t next_token_ = 1;
  bool has_foreign_ = false;
  std::vector<Peer*> dirty_;
  std::vector<Peer*> broken_;  // whose session has no connection
  std::uint64_t waits_ = 0;  // times that a thread began to wait

  std::unordered_map<std::uint64_t, std::unique_ptr<Mailbox>> mailboxes_;
  std::unordered_map<std::uint64_t, Early> early_;  // by actor
  std::unordered_map<std::uint64_t, Grave> graves_;
  std::deque<std::uint64_t> buried_;  // the oldest first
  std::unordered_map<std::uint64_t, std::shared_ptr<Inbox>> inboxes_;
  std::uint64_t next_inbox_ = 1;

  Casting casting_;

  Board board_;

  std::deque<std::unique_ptr<Worker>> workers_;
  Worker* main_ = nullptr;

  std::deque<Event> events_out_;
  std::condition_variable events_condition_;

  // the lead
  enum class Lead { kFree, kThread, kCaretaker } lead_ = Lead::kFree;
  Waiter* leader_ = nullptr;
  bool polling_ = false;   // the leader is in the poller
  std::vector<Waiter*> followers_;  // wait for an answer or for credit, and do not lead
  std::vector<Waiter*> idle_;       // workers with nothing to do that do not lead
  bool handed_ = false;             // the last poll had something for a thread other than its own
  int wanted_ = 0;         // threads that want the lead from the caretaker
  base::Instant freed_{};  // when the lead was free last
  bool stays_away_ = false;  // who gives it up does so for long, or may
  std::uint64_t polls_ = 0;
  std::uint64_t beats_ = 0;  // heartbeats that came
  std::vector<Waiter*> credit_waiters_;
  std::vector<Waiter*> space_waiters_;  // for room in a link, or for the link

  net::Arena arena_;
  const std::shared_ptr<Returns> returns_;
  net::Mappings mappings_;
  std::vector<std::shared_ptr<const void>> garbage_;  // freed by the caretaker, without the lock
  std::uint64_t next_transfer_ = 1;
  base::Instant no_offers_until_{};
  bool warned_ = false;
  std::size_t loans_seen_ = 0;
  base::Instant last_loan_{};

  std::condition_variable caretaker_condition_;
  bool caretaker_deep_ = false;
  base::Instant caretaker_until_{};  // it sleeps, unless it is woken
  bool flush_armed_ = false;   // writes are delayed, and due
  base::Instant flush_due_{};  // then
  std::uint64_t delays_ = 0;   // of writes, so far
  base::Duration turn_ = k_stuck;  // in one message, after which a worker is stuck
  bool blocked_ = false;           // a crowded one began to wait for an answer
  wire::Rhythm rhythm_;
  std::mutex ending_;  // held by who ends the thread
  std::thread thread_;
};

}  // namespace monarch::actor
