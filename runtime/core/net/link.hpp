// One stream socket to another process: frames in, frames out, never blocking.
//
// Small frames gather in a buffer until flush(); what is large goes out from the caller's memory at
// once, and only what the socket does not take is copied. Not thread-safe: its owner locks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "net/shared_memory.hpp"
#include "net/tls.hpp"
#include "wire/decoder.hpp"
#include "wire/message.hpp"
#include "wire/session.hpp"

namespace monarch::net {

class Link {
 public:
  // Takes the connected socket over and makes it non-blocking; with `tls`, whose handshake is done,
  // everything goes through that. With `session` the link outlives its connection.
  explicit Link(int fd, std::unique_ptr<TlsStream> tls = nullptr, bool session = false);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  [[nodiscard]] int fd() const noexcept { return fd_; }

  // A session whose connection has ended by no fault of what was sent may go on with another one;
  // until then it is broken, and keeps what is sent.
  [[nodiscard]] bool is_session() const noexcept { return session_.has_value(); }
  [[nodiscard]] bool broken() const noexcept { return fd_ < 0; }
  [[nodiscard]] bool resumable() const noexcept { return session_ && !session_->refused(); }
  // Whether nothing of the session is known to have reached either side.
  [[nodiscard]] bool untouched() const noexcept { return session_ && session_->untouched(); }
  void break_off();
  void resume(int fd, std::unique_ptr<TlsStream> tls);
  // As resume(), with a peer that never knew of the session; where untouched().
  void begin_again(int fd, std::unique_ptr<TlsStream> tls);
  // Says what was taken, where that is due; always with `now`. Whether there was anything to say.
  bool acknowledge(bool now);
  // Whether the peer has said where to go on, since this was asked last.
  [[nodiscard]] bool went_on() noexcept { return session_ && session_->went_on(); }

  // Queues one frame: its message is the concatenation of `parts`. Fails when it is above the
  // limit; the link goes on.
  [[nodiscard]] base::Result<void> send(wire::Kind kind, std::span<const base::Bytes> parts,
                                        std::span<const base::Bytes> buffers);

  // Queues one small frame with a descriptor, which arrives with its first byte; `hold` keeps it
  // open until then. Only where passes_descriptors().
  [[nodiscard]] base::Result<void> send_descriptor(wire::Kind kind, base::Bytes message, int fd,
                                                   std::shared_ptr<const void> hold);
  [[nodiscard]] bool passes_descriptors() const noexcept { return is_unix_; }
  // The descriptor that came with the frame being handled; none where the system had no room for
  // it, or the peer sent none.
  [[nodiscard]] Descriptor take_descriptor();

  // Writes what the socket takes. False when the peer is gone.
  bool flush();
  // Bytes of all frames so far, and those of them that the socket took.
  [[nodiscard]] std::uint64_t queued() const noexcept { return queued_; }
  [[nodiscard]] std::uint64_t written() const noexcept {
    return session_ ? queued_ - session_->unsent() : written_;
  }
  [[nodiscard]] std::size_t unsent() const noexcept {
    return session_ ? session_->unsent() : out_.size() - sent_;
  }

  // Whether flush() has something to write: on a resumed connection not before the peer has said
  // where to go on.
  [[nodiscard]] bool has_to_write() const noexcept {
    return session_ ? !session_->next().empty() : unsent() > 0;
  }

  // Reads what is there, up to a bound, and hands out the frames; views into the frame live until
  // `handle` returns, unless it keeps their storage. False at end of file, on an error of the
  // socket, and when the bytes are no frames of ours: `why()` says which.
  bool receive(const std::function<bool(wire::Frame&)>& handle);
  // Whether receive() has something although the socket may not be readable.
  [[nodiscard]] bool pending() const { return tls_ != nullptr && tls_->pending(); }
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

  base::Instant last_flush{};
  bool waits_for_space = false;  // the poller watches for room in the socket
  std::uint64_t wait = 0;        // the owner's count of waits when it last sent something here
  std::uint32_t burst = 0;       // messages since then
  bool dirty = false;            // in the owner's list of links to flush

 private:
  struct Passing {
    std::uint64_t position;  // in the stream, of the frame it goes with
    int fd;
    std::shared_ptr<const void> hold;
  };

  [[nodiscard]] bool write(std::vector<base::Bytes>& pieces);
  [[nodiscard]] ::ssize_t write_pieces(std::span<const base::Bytes> pieces);
  [[nodiscard]] ::ssize_t write_some();
  bool flush_session();
  void end();
  void open(int fd, std::unique_ptr<TlsStream> tls);
  void close_socket();
  [[nodiscard]] bool take(base::Bytes input, const std::function<bool(wire::Frame&)>& handle);
  [[nodiscard]] ::ssize_t read_some(std::span<std::byte> buffer);
  void keep(std::span<const base::Bytes> pieces);

  int fd_ = -1;
  std::unique_ptr<TlsStream> tls_;
  wire::Decoder decoder_;
  std::uint64_t sequence_ = 0;
  std::vector<std::byte> out_;
  std::size_t sent_ = 0;  // of out_
  std::uint64_t written_ = 0;  // bytes of the stream that the socket took
  std::deque<Passing> passing_;
  std::deque<Descriptor> received_;  // by frame; -1 for one that was lost on the way
  const bool is_unix_;

  std::optional<wire::Session> session_;  // in place of decoder_, sequence_ and out_

  bool gone_ = false;
  std::uint64_t queued_ = 0;
  std::string why_;
};

}  // namespace monarch::net
