// TLS 1.3 over a connected socket: both sides show a certificate, and nothing older is spoken.
//
// A context says who a process is and whom it believes; a stream is one connection. Reads and
// writes are non-blocking and behave as recv and send do, errno included.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace monarch::net {

class TlsContext {
 public:
  // The authority's key is drawn from 32 bytes that all who belong together hold, the process's own
  // from 32 that it alone has. The certificate, made here, is good for `names`
  // ("IP:10.0.0.1,DNS:node7") until `seconds` from now.
  [[nodiscard]] static base::Result<std::shared_ptr<TlsContext>> derive(base::Bytes authority,
                                                                        base::Bytes own,
                                                                        const std::string& names,
                                                                        long seconds);
  // From PEM files: authorities that are believed; the certificate (and its chain); its key.
  [[nodiscard]] static base::Result<std::shared_ptr<TlsContext>> read(
      const std::string& authorities, const std::string& certificate, const std::string& key);

  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

 private:
  friend class TlsStream;
  explicit TlsContext(void* context) noexcept : context_(context) {}
  [[nodiscard]] static base::Result<std::shared_ptr<TlsContext>> make();

  void* context_;
};

class TlsStream {
 public:
  enum class Side { kDialer, kListener };
  enum class Step { kDone, kRead, kWrite };  // or what the socket has to be ready for

  // The descriptor stays the caller's, and non-blocking. A dialer gives the IP address or name that
  // the other side's certificate has to be for; none is checked for an empty one.
  [[nodiscard]] static base::Result<std::unique_ptr<TlsStream>> begin(
      std::shared_ptr<TlsContext> context, int fd, Side side, const std::string& host);
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;
  ~TlsStream();

  // Goes on with the handshake. The error's text says what was wrong; `verified()` is the number of
  // the check that the other side's certificate failed, 0 for none.
  [[nodiscard]] base::Result<Step> handshake();
  [[nodiscard]] long verified() const;

  // As recv and send. On EPROTO `why()` says what was wrong.
  [[nodiscard]] ::ssize_t read(std::span<std::byte> buffer);
  [[nodiscard]] ::ssize_t write(base::Bytes data);
  // Whether read() may have more without the socket being readable.
  [[nodiscard]] bool pending() const;
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

  // 32 bytes that both ends of this connection have, and nobody in the middle can have.
  [[nodiscard]] base::Result<std::string> binding();

 private:
  TlsStream(std::shared_ptr<TlsContext> context, void* stream) noexcept
      : context_(std::move(context)), stream_(stream) {}
  static void begin_step();
  [[nodiscard]] ::ssize_t failed(int result);

  std::shared_ptr<TlsContext> context_;
  void* stream_;
  std::string why_;
};

}  // namespace monarch::net
