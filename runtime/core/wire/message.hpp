// What the frames between processes say. Every message starts with a fixed head, little-endian;
// the rest of a frame's message is the payload.
//
//   call     actor 8, sender 8, reply_proc 8, inbox 8, rank 4, flags 2, endpoint 2, extent 2,
//            reserved 2; then the endpoint's name and the extent, then the payload
//   reply    inbox 8, rank 4, status 1, reserved 3; then the payload
//   control  the payload alone
//   cancel   actor 8, inbox 8
//   credit   target 8, bytes 8
//   ping and pong are empty
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace monarch::wire {

enum class Kind : std::uint8_t {
  kCall = 1,
  kReply = 2,
  kControl = 3,
  kCancel = 4,
  kCredit = 5,
  kPing = 6,
  kPong = 7,
  // of large payloads: wire/transfer.hpp
  kSegment = 8,
  kMapped = 9,
  kAttach = 10,
  kRelease = 11,
  kDrop = 12,
  kChunk = 13,
  kAcknowledged = 15,  // of a session: how many frames were taken, 8 bytes
  kHandOver = 14,  // with a descriptor: a connection that came in elsewhere
  // of casts by way of other processes: wire/cast.hpp
  kCast = 16,
  kDeliver = 17,
  kAnswer = 18,
  kGathered = 19,
  kDone = 20,
  kBarrier = 21,
  kRecast = 22,
};

struct Call {
  std::uint64_t actor = 0;
  std::uint64_t sender = 0;
  std::uint64_t reply_proc = 0;  // whose inbox the reply goes to; 0 is the sender's process
  std::uint64_t inbox = 0;       // 0 when no reply is wanted
  std::uint32_t rank = 0;
  std::uint16_t flags = 0;
  std::string_view endpoint = {};
  std::string_view extent = {};
};

struct Reply {
  std::uint64_t inbox = 0;
  std::uint32_t rank = 0;
  std::uint8_t status = 0;
};

struct Cancel {
  std::uint64_t actor = 0;
  std::uint64_t inbox = 0;
};

struct Credit {
  std::uint64_t target = 0;
  std::uint64_t bytes = 0;
};

inline constexpr std::size_t k_call_head = 44;
inline constexpr std::size_t k_reply_head = 16;
inline constexpr std::size_t k_pair_head = 16;
// A name is far shorter; this is what a head can state.
inline constexpr std::size_t k_max_name = 0xFFFF;

void write_call(const Call& call, base::MutableBytes head) noexcept;
void write_reply(const Reply& reply, base::MutableBytes head) noexcept;
void write_cancel(const Cancel& cancel, base::MutableBytes head) noexcept;
void write_credit(const Credit& credit, base::MutableBytes head) noexcept;

// Each takes its head (and names) from the front of `message` and leaves the payload. The views of
// a Call point into `message`.
[[nodiscard]] base::Result<Call> read_call(base::Bytes& message);
[[nodiscard]] base::Result<Reply> read_reply(base::Bytes& message);
[[nodiscard]] base::Result<Cancel> read_cancel(base::Bytes& message);
[[nodiscard]] base::Result<Credit> read_credit(base::Bytes& message);

}  // namespace monarch::wire
