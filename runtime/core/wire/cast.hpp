// Casts: one message for many processes of other hosts, down a tree of host agents ("relays") and
// the answers up again. This file has what is said between them and the shape of the tree; the
// state machines are beside it, without I/O and without a clock of their own:
//
//   origin    wire/cast_origin: who casts keeps what it entrusted to the tree until that is settled
//   relay     wire/cast_relay: a host agent hands out, passes on, and gathers answers
//   route     wire/cast_route: the way to one group, which relays keep, so that later casts name it
//   receiver  wire/cast_lane: a process takes what came by the tree and what came directly in the
//             order in which it was sent, each once, and answers the way that it came
//
// Relays promise nothing. Whatever one loses, does not reach or takes with it when it dies is sent
// again by the origin, directly; a receiver knows by the number what it had, and repeats the answer.
// docs/runtime/cast.md says why that is enough.
//
// Little-endian:
//
//   cast      origin 8, number 8, stable 8, route 8, plan's size 4, flags 4 (1: answers are wanted);
//             then the plan, a branch; then a call message, whose actor and rank say nothing
//   recast    origin 8, number 8, stable 8, route 8, previous 8, more 8, how many differ 4, flags 4;
//             then who differs: rank 4, previous 8, after 8, in order of rank; then a call message
//   branch    relay 8, receivers 4, branches 4; then the receivers; then the branches, each behind
//             its size 4
//   receiver  flags 1, proc 8; then what differs from the receiver before (from zeros at first), a
//             flag for each: 1 actor 8, 2 rank 4 (else one more), 4 previous 8, 8 after 8
//   deliver   origin 8, number 8, previous 8, after 8, stable 8; then a call message
//   answer    origin 8, number 8, rank 4, status 4; then the payload
//   gathered  origin 8, number 8; then groups: status 4, payload's size 4, runs 4; then runs of
//             ranks, first 4 and count 4; then the payload
//   done      origin 8; then numbers of 8, at least one
//   barrier   number 8
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "wire/ranks.hpp"

namespace monarch::wire {

// In place of the status of a reply.
inline constexpr std::uint32_t k_missed = 0x100;     // it was not brought there: send it directly
inline constexpr std::uint32_t k_elsewhere = 0x101;  // no answer comes this way: the receiver has
                                                     // answered directly, or will not answer

// An answer that is larger, or has buffers, is sent directly.
inline constexpr std::size_t k_most_answer = 8U << 10;

// Who gets a cast. Of all that the origin sends to the process, in order, `previous` is the number
// of the last cast before this one (0: none), and `after` counts the direct messages before it.
struct Receiver {
  std::uint64_t proc = 0;
  std::uint64_t actor = 0;
  std::uint32_t rank = 0;
  std::uint64_t previous = 0;
  std::uint64_t after = 0;
  bool operator==(const Receiver&) const = default;
};

// What one relay is to do: hand out, and pass on.
struct Branch {
  std::uint64_t relay = 0;
  std::vector<Receiver> receivers;
  std::vector<Branch> branches;
};

// As it is read: those further down stay as they came.
struct Plan {
  std::uint64_t relay = 0;
  std::vector<Receiver> receivers;
  struct Below {
    std::uint64_t relay = 0;
    Ranks ranks;  // of all receivers there
    base::Bytes branch;
  };
  std::vector<Below> below;
};

struct Cast {
  std::uint64_t origin = 0;
  std::uint64_t number = 0;  // of the origin's casts, from 1
  std::uint64_t stable = 0;  // all up to this one are settled: no answer of theirs is asked for again
  bool answers = false;
  std::uint64_t route = 0;  // what its plan is kept as, by this origin; 0: it is not kept
};

// A receiver of a recast before which something else comes than before the others.
struct Differing {
  std::uint32_t rank = 0;
  std::uint64_t previous = 0;
  std::uint64_t after = 0;
  bool operator==(const Differing&) const = default;
};

// A cast by a plan that relays keep. Who does not differ has `previous` before it, and as many direct
// messages as the plan says and `more`.
struct Recast {
  Cast cast;
  std::uint64_t previous = 0;
  std::uint64_t more = 0;
  std::vector<Differing> differing = {};
};

struct Deliver {
  std::uint64_t origin = 0;
  std::uint64_t number = 0;
  std::uint64_t previous = 0;
  std::uint64_t after = 0;
  std::uint64_t stable = 0;
};

struct Answer {
  std::uint64_t origin = 0;
  std::uint64_t number = 0;
  std::uint32_t rank = 0;
  std::uint32_t status = 0;
};

struct Group {
  std::uint32_t status = 0;
  base::Bytes payload;
  Ranks ranks;
};

struct Gathered {
  std::uint64_t origin = 0;
  std::uint64_t number = 0;
  std::vector<Group> groups;
};

struct Done {
  std::uint64_t origin = 0;
  std::vector<std::uint64_t> numbers;
};

inline constexpr std::size_t k_cast_head = 40;
inline constexpr std::size_t k_recast_head = 56;
inline constexpr std::size_t k_deliver_head = 40;
inline constexpr std::size_t k_answer_head = 24;
inline constexpr std::size_t k_gathered_head = 16;
inline constexpr std::size_t k_group_head = 12;
inline constexpr std::size_t k_barrier_size = 8;
inline constexpr std::size_t k_most_depth = 32;  // of a tree
inline constexpr std::size_t k_routes = 64;      // the newest of each origin are kept

// Head and plan; the call message follows. `branch` is one of a plan, or what write_branch() made.
[[nodiscard]] std::vector<std::byte> cast_message(const Cast& cast, base::Bytes branch);
[[nodiscard]] std::vector<std::byte> recast_message(const Recast& recast);
[[nodiscard]] std::vector<std::byte> write_branch(const Branch& branch);
void write_deliver(const Deliver& deliver, base::MutableBytes head) noexcept;
void write_answer(const Answer& answer, base::MutableBytes head) noexcept;
[[nodiscard]] std::vector<std::byte> gathered_message(const Gathered& gathered);
[[nodiscard]] std::vector<std::byte> done_message(const Done& done);

// Each takes its part from the front of `message` and leaves what follows it; views point into it.
[[nodiscard]] base::Result<Cast> read_cast(base::Bytes& message, base::Bytes& plan);
[[nodiscard]] base::Result<Recast> read_recast(base::Bytes& message);
[[nodiscard]] base::Result<Plan> read_plan(base::Bytes branch);
[[nodiscard]] base::Result<Deliver> read_deliver(base::Bytes& message);
[[nodiscard]] base::Result<Answer> read_answer(base::Bytes& message);
[[nodiscard]] base::Result<Gathered> read_gathered(base::Bytes message);
[[nodiscard]] base::Result<Done> read_done(base::Bytes message);
[[nodiscard]] base::Result<std::uint64_t> read_barrier(base::Bytes message);

// The shape of the tree over relays that have places 0, 1, 2, … in an order that stays.

inline constexpr std::size_t k_root = ~std::size_t{0};

// Whom a place is reached from where all links are there: the root has `fan_out` below it, as has
// every place.
[[nodiscard]] constexpr std::size_t above(std::size_t place, std::size_t fan_out) noexcept {
  return place < fan_out ? k_root : place / fan_out - 1;
}

struct Hop {
  std::size_t place = 0;
  std::size_t from = k_root;
};

// From whom each of the places `wanted` (in order, each once) is reached, and each that is between;
// who is above comes first. Where `usable(from, place)` says no, the next one further up takes over,
// last the root. Up to `fan_out` places are all below the root.
[[nodiscard]] std::vector<Hop> shape(std::span<const std::size_t> wanted, std::size_t fan_out,
                                     const std::function<bool(std::size_t, std::size_t)>& usable);

}  // namespace monarch::wire
