#include "net/tls.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "net/certificate.hpp"
#include "net/openssl.hpp"

namespace monarch::net {
namespace {

using base::Code;
using base::Error;
using openssl::Library;
using openssl::SSL;
using openssl::SSL_CTX;

constexpr std::size_t kReadBuffer = 64 << 10;  // records taken from the socket at once
constexpr std::size_t kMostWritten = 1 << 30;
constexpr std::string_view kLabel = "EXPORTER-monarch-link";

const Library& ssl() { return *openssl::library(); }

SSL_CTX* context_of(void* context) { return static_cast<SSL_CTX*>(context); }
SSL* stream_of(void* stream) { return static_cast<SSL*>(stream); }

bool is_address(const std::string& host) {
  in6_addr place{};
  return ::inet_pton(AF_INET, host.c_str(), &place) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &place) == 1;
}

Error failure(const std::string& what) {
  return Error{Code::kSystem, what + ": " + openssl::take_error(ssl())};
}

}  // namespace

base::Result<std::shared_ptr<TlsContext>> TlsContext::make() {
  const auto& found = openssl::library();
  if (!found) return found.error();
  SSL_CTX* const made = found->SSL_CTX_new(found->TLS_method());
  if (made == nullptr) return failure("TLS cannot be used");
  std::shared_ptr<TlsContext> context(new TlsContext(made));
  found->SSL_CTX_ctrl(made, openssl::k_ctrl_least_version, openssl::k_tls_1_3, nullptr);
  found->SSL_CTX_ctrl(made, openssl::k_ctrl_mode, openssl::k_mode_partial_and_moving, nullptr);
  found->SSL_CTX_ctrl(made, openssl::k_ctrl_read_ahead, 1, nullptr);
  found->SSL_CTX_set_default_read_buffer_len(made, kReadBuffer);
  // Frames say where they end; a connection may break off like any other.
  found->SSL_CTX_set_options(made, openssl::k_ignore_unexpected_end);
  found->SSL_CTX_set_num_tickets(made, 0);
  found->SSL_CTX_set_verify(made, openssl::k_verify_peer_or_fail, nullptr);
  return context;
}

base::Result<std::shared_ptr<TlsContext>> TlsContext::derive(base::Bytes authority, base::Bytes own,
                                                             const std::string& names,
                                                             long seconds) {
  auto context = make();
  if (!context) return context;
  SSL_CTX* const made = context_of((*context)->context_);
  auto issued = issue(authority, own, names, seconds);
  if (!issued) return std::move(issued).error();
  if (ssl().X509_STORE_add_cert(ssl().SSL_CTX_get_cert_store(made), issued->authority.get()) != 1 ||
      ssl().SSL_CTX_use_certificate(made, issued->certificate.get()) != 1 ||
      ssl().SSL_CTX_use_PrivateKey(made, issued->key.get()) != 1) {
    return failure("the certificate of this process cannot be used");
  }
  return context;
}

base::Result<std::shared_ptr<TlsContext>> TlsContext::read(const std::string& authorities,
                                                           const std::string& certificate,
                                                           const std::string& key) {
  auto context = make();
  if (!context) return context;
  SSL_CTX* const made = context_of((*context)->context_);
  if (ssl().SSL_CTX_load_verify_locations(made, authorities.c_str(), nullptr) != 1) {
    return failure("no authorities could be read from " + authorities);
  }
  if (ssl().SSL_CTX_use_certificate_chain_file(made, certificate.c_str()) != 1) {
    return failure("no certificate could be read from " + certificate);
  }
  if (ssl().SSL_CTX_use_PrivateKey_file(made, key.c_str(), openssl::k_pem) != 1 ||
      ssl().SSL_CTX_check_private_key(made) != 1) {
    return failure("no key of the certificate could be read from " + key);
  }
  return context;
}

TlsContext::~TlsContext() { ssl().SSL_CTX_free(context_of(context_)); }

base::Result<std::unique_ptr<TlsStream>> TlsStream::begin(std::shared_ptr<TlsContext> context,
                                                          int fd, Side side,
                                                          const std::string& host) {
  SSL* const made = ssl().SSL_new(context_of(context->context_));
  if (made == nullptr) return failure("no connection can be made");
  std::unique_ptr<TlsStream> stream(new TlsStream(std::move(context), made));
  if (ssl().SSL_set_fd(made, fd) != 1) return failure("the socket cannot be used");
  if (side == Side::kListener) {
    ssl().SSL_set_accept_state(made);
    return stream;
  }
  ssl().SSL_set_connect_state(made);
  auto* const wanted = ssl().SSL_get0_param(made);
  if (!host.empty() &&
      (is_address(host) ? ssl().X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str())
                        : ssl().X509_VERIFY_PARAM_set1_host(wanted, host.data(), host.size())) != 1) {
    return failure("a certificate for " + host + " cannot be asked for");
  }
  return stream;
}

TlsStream::~TlsStream() { ssl().SSL_free(stream_of(stream_)); }

base::Result<TlsStream::Step> TlsStream::handshake() {
  SSL* const stream = stream_of(stream_);
  ssl().ERR_clear_error();
  const int result = ssl().SSL_do_handshake(stream);
  if (result == 1) return Step::kDone;
  switch (ssl().SSL_get_error(stream, result)) {
    case openssl::k_want_read:
      return Step::kRead;
    case openssl::k_want_write:
      return Step::kWrite;
    default:
      break;
  }
  if (const long number = verified(); number != 0) {
    ssl().ERR_clear_error();
    return Error{Code::kSystem, ssl().X509_verify_cert_error_string(number)};
  }
  const unsigned long code = ssl().ERR_get_error();
  if (code == 0) return Error{Code::kSystem, "the connection ended"};
  ssl().ERR_clear_error();
  const char* const reason = ssl().ERR_reason_error_string(code);
  return Error{Code::kSystem, reason == nullptr ? "no reason given" : reason};
}

long TlsStream::verified() const { return ssl().SSL_get_verify_result(stream_of(stream_)); }

// SSL_get_error takes for a failure of this stream what anybody left in the thread's error queue.
void TlsStream::begin_step() {
  ssl().ERR_clear_error();
  errno = 0;
}

::ssize_t TlsStream::failed(int result) {
  switch (ssl().SSL_get_error(stream_of(stream_), result)) {
    case openssl::k_want_read:
    case openssl::k_want_write:
      errno = EAGAIN;
      return -1;
    case openssl::k_closed:
      return 0;
    case openssl::k_syscall:
      if (errno == 0) errno = ECONNRESET;
      return -1;
    default:
      why_ = openssl::take_error(ssl());
      errno = EPROTO;
      return -1;
  }
}

::ssize_t TlsStream::read(std::span<std::byte> buffer) {
  begin_step();
  const int size = static_cast<int>(std::min(buffer.size(), kMostWritten));
  const int count = ssl().SSL_read(stream_of(stream_), buffer.data(), size);
  return count > 0 ? count : failed(count);
}

::ssize_t TlsStream::write(base::Bytes data) {
  begin_step();
  const int size = static_cast<int>(std::min(data.size(), kMostWritten));
  const int count = ssl().SSL_write(stream_of(stream_), data.data(), size);
  if (count > 0) return count;
  const ::ssize_t result = failed(count);
  if (result == 0) errno = EPIPE;
  return -1;
}

bool TlsStream::pending() const { return ssl().SSL_has_pending(stream_of(stream_)) == 1; }

base::Result<std::string> TlsStream::binding() {
  std::array<unsigned char, 32> secret{};
  if (ssl().SSL_export_keying_material(stream_of(stream_), secret.data(), secret.size(),
                                       kLabel.data(), kLabel.size(), nullptr, 0, 0) != 1) {
    return failure("the connection gives no binding");
  }
  return std::string(reinterpret_cast<const char*>(secret.data()), secret.size());
}

}  // namespace monarch::net
