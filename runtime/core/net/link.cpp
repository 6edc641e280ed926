#include "net/link.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "net/connections.hpp"
#include "wire/encoder.hpp"

namespace monarch::net {
namespace {

using base::Bytes;

constexpr std::size_t kLarge = 32 << 10;   // from here on a frame is not copied to be sent
constexpr std::size_t kInput = 128 << 10;  // bytes taken from a socket at once
constexpr int kReads = 8;                  // at most, before the others get their turn
constexpr std::size_t kKeptCapacity = 1 << 20;

#if defined(MSG_NOSIGNAL)
constexpr int kSendFlags = MSG_NOSIGNAL;
#else
constexpr int kSendFlags = 0;  // SO_NOSIGPIPE is set on the socket
#endif

constexpr std::size_t kMostReceived = 64;  // descriptors that no frame asked for yet

#if defined(MSG_CMSG_CLOEXEC)
constexpr int kReceiveFlags = MSG_CMSG_CLOEXEC;
#else
constexpr int kReceiveFlags = 0;
#endif

bool is_unix_socket(int fd) noexcept {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
         address.ss_family == AF_UNIX;
}

std::vector<std::byte>& input_buffer() {
  thread_local std::vector<std::byte> buffer(kInput);
  return buffer;
}

}  // namespace

Link::Link(int fd, std::unique_ptr<TlsStream> tls, bool session)
    : decoder_(wire::DecoderOptions{}), is_unix_(is_unix_socket(fd)) {
  if (session) session_.emplace();
  open(fd, std::move(tls));
}

void Link::open(int fd, std::unique_ptr<TlsStream> tls) {
  fd_ = fd;
  note_connection(fd_);
  tls_ = std::move(tls);
  ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
  ::fcntl(fd_, F_SETFD, FD_CLOEXEC);
#if defined(SO_NOSIGPIPE)
  const int one = 1;
  ::setsockopt(fd_, SOL_SOCKET, SO_NOSIGPIPE, &one, sizeof one);
#endif
}

Link::~Link() {
  tls_.reset();
  close_socket();
}

void Link::close_socket() {
  if (fd_ < 0) return;
  forget_connection(fd_);
  ::close(std::exchange(fd_, -1));
}

void Link::break_off() {
  tls_.reset();
  close_socket();
  waits_for_space = false;
}

void Link::resume(int fd, std::unique_ptr<TlsStream> tls) {
  break_off();
  open(fd, std::move(tls));
  gone_ = false;
  session_->resume();
}

void Link::begin_again(int fd, std::unique_ptr<TlsStream> tls) {
  break_off();
  open(fd, std::move(tls));
  gone_ = false;
  session_->begin_again();
}

bool Link::acknowledge(bool now) {
  if (!session_ || broken()) return false;
  const std::uint64_t before = session_->log().size();
  const bool said = session_->acknowledge(now);
  queued_ += session_->log().size() - before;
  return said;
}

base::Result<void> Link::send(wire::Kind kind, std::span<const Bytes> parts,
                              std::span<const Bytes> buffers) {
  const wire::FrameShape shape = wire::shape_of(parts, buffers);
  if (auto fits = wire::check_limits(shape, buffers.size()); !fits) return fits;
  queued_ += wire::k_header_size + shape.length;
  if (session_) {
    session_->send(static_cast<std::uint8_t>(kind), parts, buffers);
    if (shape.length >= kLarge) flush();
    return {};
  }
  if (gone_) return {};
  const std::size_t head_start = out_.size();
  out_.resize(head_start + shape.head);
  wire::write_head(static_cast<std::uint8_t>(kind), sequence_++, shape, buffers,
                   base::MutableBytes(out_).subspan(head_start));
  if (shape.length < kLarge) {
    for (const Bytes part : parts) out_.insert(out_.end(), part.begin(), part.end());
    for (const Bytes buffer : buffers) {
      const std::size_t padding = wire::padding_at(out_.size() - head_start);
      out_.insert(out_.end(), padding, std::byte{0});
      out_.insert(out_.end(), buffer.begin(), buffer.end());
    }
    return {};
  }
  std::vector<Bytes> pieces;
  std::size_t offset = shape.head;
  const auto add = [&pieces, &offset](Bytes piece) {
    if (!piece.empty()) pieces.push_back(piece);
    offset += piece.size();
  };
  for (const Bytes part : parts) add(part);
  for (const Bytes buffer : buffers) {
    add(wire::k_zeros.first(wire::padding_at(offset)));
    add(buffer);
  }
  if (flush() && unsent() == 0) {
    if (!write(pieces)) end();
  }
  keep(pieces);
  return {};
}

::ssize_t Link::write_pieces(std::span<const Bytes> pieces) {
  if (tls_ != nullptr) return tls_->write(pieces.front());
  std::array<iovec, 64> vectors;
  std::size_t count = 0;
  for (; count < vectors.size() && count < pieces.size(); ++count) {
    const Bytes piece = pieces[count];
    vectors[count] = {const_cast<std::byte*>(piece.data()), piece.size()};
  }
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = static_cast<decltype(message.msg_iovlen)>(count);
  return ::sendmsg(fd_, &message, kSendFlags);
}

// Writes from the front of `pieces` and leaves there what the socket did not take.
bool Link::write(std::vector<Bytes>& pieces) {
  std::size_t done = 0;
  while (done < pieces.size()) {
    const ssize_t sent = write_pieces(std::span(pieces).subspan(done));
    if (sent < 0) {
      if (errno == EINTR) continue;
      pieces.erase(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(done));
      return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS;
    }
    auto left = static_cast<std::size_t>(sent);
    written_ += left;
    while (done < pieces.size() && left >= pieces[done].size()) left -= pieces[done++].size();
    if (left > 0) pieces[done] = pieces[done].subspan(left);
  }
  pieces.clear();
  return true;
}

void Link::keep(std::span<const Bytes> pieces) {
  if (gone_) return;
  for (const Bytes piece : pieces) out_.insert(out_.end(), piece.begin(), piece.end());
}

base::Result<void> Link::send_descriptor(wire::Kind kind, Bytes message, int fd,
                                         std::shared_ptr<const void> hold) {
  if (!gone_) passing_.push_back({written_ + unsent(), fd, std::move(hold)});
  return send(kind, {&message, 1}, {});
}

// Up to the next frame that has a descriptor with it, or that frame and what follows it.
inline ::ssize_t Link::write_some() {
  if (tls_ != nullptr) return tls_->write(Bytes(out_).subspan(sent_));
  if (passing_.empty()) return ::send(fd_, out_.data() + sent_, unsent(), kSendFlags);
  const Passing& next = passing_.front();
  if (next.position > written_) {
    return ::send(fd_, out_.data() + sent_, next.position - written_, kSendFlags);
  }
  std::size_t size = unsent();
  if (passing_.size() > 1) size = std::min<std::size_t>(size, passing_[1].position - written_);
  iovec part{out_.data() + sent_, size};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &next.fd, sizeof next.fd);
  const ssize_t sent = ::sendmsg(fd_, &message, kSendFlags);
  if (sent > 0) passing_.pop_front();
  return sent;
}

::ssize_t Link::read_some(std::span<std::byte> buffer) {
  if (tls_ != nullptr) return tls_->read(buffer);
  if (!is_unix_) return ::recv(fd_, buffer.data(), buffer.size(), 0);
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t count = ::recvmsg(fd_, &message, kReceiveFlags);
  if (count <= 0) return count;
  const std::size_t before = received_.size();
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= header->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + (at - CMSG_LEN(0)), sizeof fd);
      if (kReceiveFlags == 0) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
      received_.emplace_back(fd);
    }
  }
  // The system had no descriptor left for it.
  if (received_.size() == before && (message.msg_flags & MSG_CTRUNC) != 0) {
    received_.emplace_back(-1);
  }
  return count;
}

Descriptor Link::take_descriptor() {
  if (received_.empty()) return {};
  Descriptor taken = std::move(received_.front());
  received_.pop_front();
  return taken;
}

// Nothing more can be written. Where that is no fault of the peer's, both sides are to read an end:
// neither would hear of it otherwise.
void Link::end() {
  gone_ = true;
  ::shutdown(fd_, SHUT_RDWR);
}

bool Link::flush_session() {
  while (!broken() && !gone_) {
    const Bytes next = session_->next();
    if (next.empty()) break;
    const ssize_t sent = tls_ != nullptr ? tls_->write(next)
                                         : ::send(fd_, next.data(), next.size(), kSendFlags);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS) end();
      break;
    }
    session_->wrote(static_cast<std::size_t>(sent));
  }
  return !gone_;
}

bool Link::flush() {
  if (session_) return flush_session();
  while (!gone_ && unsent() > 0) {
    const ssize_t sent = write_some();
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) return true;
      end();
      break;
    }
    sent_ += static_cast<std::size_t>(sent);
    written_ += static_cast<std::uint64_t>(sent);
  }
  if (unsent() == 0 || gone_) {
    sent_ = 0;
    if (gone_) passing_.clear();
    if (out_.capacity() > kKeptCapacity) std::vector<std::byte>().swap(out_);
    out_.clear();
  } else if (sent_ > kKeptCapacity) {
    out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(sent_));
    sent_ = 0;
  }
  return !gone_;
}

inline bool Link::take(Bytes input, const std::function<bool(wire::Frame&)>& handle) {
  if (session_) {
    auto taken = session_->take(input, handle);
    if (!taken) why_ = taken.error().message;
    return taken.ok();
  }
  while (!input.empty()) {
    auto frame = decoder_.next(input);
    if (!frame) {
      why_ = frame.error().message;
      return false;
    }
    if (frame->has_value() && !handle(**frame)) {
      why_ = "a message that says nothing of ours";
      return false;
    }
  }
  return true;
}

bool Link::receive(const std::function<bool(wire::Frame&)>& handle) {
  std::vector<std::byte>& buffer = input_buffer();
  // What TLS holds already makes no socket readable: it is read to its end.
  for (int reads = 0; reads < kReads || pending(); ++reads) {
    const ssize_t count = read_some(buffer);
    if (count == 0) {
      const bool whole = session_ ? !session_->in_a_frame() : decoder_.pending() == 0;
      why_ = whole ? "closed by the peer" : "closed in the middle of a frame";
      return false;
    }
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
      why_ = errno == EPROTO && tls_ != nullptr ? tls_->why() : std::strerror(errno);
      return false;
    }
    if (!take(Bytes(buffer.data(), static_cast<std::size_t>(count)), handle)) return false;
    if (received_.size() > kMostReceived) {
      why_ = "more descriptors than frames that have one";
      return false;
    }
    if (tls_ != nullptr ? !pending() : static_cast<std::size_t>(count) < buffer.size()) {
      return true;
    }
  }
  return true;
}

}  // namespace monarch::net
