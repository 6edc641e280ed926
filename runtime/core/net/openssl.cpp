#include "net/openssl.hpp"

#include <dlfcn.h>

#include <array>

namespace monarch::net::openssl {
namespace {

using base::Code;
using base::Error;

#if defined(__APPLE__)
constexpr std::array kSsl{"libssl.3.dylib", "/opt/homebrew/opt/openssl@3/lib/libssl.3.dylib",
                          "/usr/local/opt/openssl@3/lib/libssl.3.dylib"};
constexpr std::array kCrypto{"libcrypto.3.dylib",
                             "/opt/homebrew/opt/openssl@3/lib/libcrypto.3.dylib",
                             "/usr/local/opt/openssl@3/lib/libcrypto.3.dylib"};
#else
constexpr std::array kSsl{"libssl.so.3"};
constexpr std::array kCrypto{"libcrypto.so.3"};
#endif

template <std::size_t N>
void* open(const std::array<const char*, N>& names) {
  for (const char* const name : names) {
    if (void* const found = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return found;
  }
  return nullptr;
}

base::Result<Library> load() {
  void* const crypto = open(kCrypto);
  void* const ssl = crypto == nullptr ? nullptr : open(kSsl);
  if (ssl == nullptr) {
    const char* const why = ::dlerror();
    return Error{Code::kSystem, std::string("OpenSSL 3 cannot be loaded (looked for ") + kSsl[0] +
                                    " and " + kCrypto[0] + "): " +
                                    (why == nullptr ? "no reason given" : why)};
  }
  Library found{};
  std::string missing;
  const auto take = [&]<typename Function>(void* from, const char* name, Function& into) {
    into = reinterpret_cast<Function>(::dlsym(from, name));
    if (into == nullptr && missing.empty()) missing = name;
  };
#define MONARCH_SSL(name) take(ssl, #name, found.name)
#define MONARCH_CRYPTO(name) take(crypto, #name, found.name)
  MONARCH_SSL(TLS_method);
  MONARCH_SSL(SSL_CTX_new);
  MONARCH_SSL(SSL_CTX_free);
  MONARCH_SSL(SSL_CTX_ctrl);
  MONARCH_SSL(SSL_CTX_set_options);
  MONARCH_SSL(SSL_CTX_set_num_tickets);
  MONARCH_SSL(SSL_CTX_set_default_read_buffer_len);
  MONARCH_SSL(SSL_CTX_set_verify);
  MONARCH_SSL(SSL_CTX_use_certificate);
  MONARCH_SSL(SSL_CTX_use_PrivateKey);
  MONARCH_SSL(SSL_CTX_use_certificate_chain_file);
  MONARCH_SSL(SSL_CTX_use_PrivateKey_file);
  MONARCH_SSL(SSL_CTX_check_private_key);
  MONARCH_SSL(SSL_CTX_load_verify_locations);
  MONARCH_SSL(SSL_CTX_get_cert_store);
  MONARCH_SSL(SSL_new);
  MONARCH_SSL(SSL_free);
  MONARCH_SSL(SSL_set_fd);
  MONARCH_SSL(SSL_set_accept_state);
  MONARCH_SSL(SSL_set_connect_state);
  MONARCH_SSL(SSL_get0_param);
  MONARCH_SSL(SSL_do_handshake);
  MONARCH_SSL(SSL_read);
  MONARCH_SSL(SSL_write);
  MONARCH_SSL(SSL_has_pending);
  MONARCH_SSL(SSL_get_error);
  MONARCH_SSL(SSL_get_verify_result);
  MONARCH_SSL(SSL_export_keying_material);
  MONARCH_CRYPTO(EVP_PKEY_new_raw_private_key);
  MONARCH_CRYPTO(EVP_PKEY_free);
  MONARCH_CRYPTO(X509_new);
  MONARCH_CRYPTO(X509_free);
  MONARCH_CRYPTO(X509_set_version);
  MONARCH_CRYPTO(X509_get_serialNumber);
  MONARCH_CRYPTO(ASN1_INTEGER_set_uint64);
  MONARCH_CRYPTO(X509_getm_notBefore);
  MONARCH_CRYPTO(X509_getm_notAfter);
  MONARCH_CRYPTO(X509_gmtime_adj);
  MONARCH_CRYPTO(X509_get_subject_name);
  MONARCH_CRYPTO(X509_NAME_add_entry_by_txt);
  MONARCH_CRYPTO(X509_set_issuer_name);
  MONARCH_CRYPTO(X509_set_pubkey);
  MONARCH_CRYPTO(X509V3_EXT_conf_nid);
  MONARCH_CRYPTO(X509_EXTENSION_free);
  MONARCH_CRYPTO(X509_add_ext);
  MONARCH_CRYPTO(X509_sign);
  MONARCH_CRYPTO(X509_STORE_add_cert);
  MONARCH_CRYPTO(X509_VERIFY_PARAM_set1_ip_asc);
  MONARCH_CRYPTO(X509_VERIFY_PARAM_set1_host);
  MONARCH_CRYPTO(X509_verify_cert_error_string);
  MONARCH_CRYPTO(ERR_get_error);
  MONARCH_CRYPTO(ERR_clear_error);
  MONARCH_CRYPTO(ERR_error_string_n);
  MONARCH_CRYPTO(ERR_reason_error_string);
#undef MONARCH_SSL
#undef MONARCH_CRYPTO
  if (!missing.empty()) {
    return Error{Code::kSystem,
                 std::string(kSsl[0]) + " has no function " + missing + ": OpenSSL 3 is wanted"};
  }
  return found;
}

}  // namespace

const base::Result<Library>& library() {
  static const base::Result<Library> found = load();
  return found;
}

std::string take_error(const Library& ssl) {
  const unsigned long code = ssl.ERR_get_error();
  ssl.ERR_clear_error();
  if (code == 0) return "no reason given";
  if (const char* const reason = ssl.ERR_reason_error_string(code)) return reason;
  std::array<char, 256> text{};
  ssl.ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

}  // namespace monarch::net::openssl
