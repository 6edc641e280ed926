// The part of OpenSSL 3 that links use, opened at run time: a process without links off this host
// never loads it, wheels carry no copy of it, and it is the one that the system keeps up to date.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.hpp"

// Opaque here; the names are OpenSSL's.
struct ssl_ctx_st;
struct ssl_st;
struct ssl_method_st;
struct evp_pkey_st;
struct evp_md_st;
struct x509_st;
struct X509_name_st;
struct X509_extension_st;
struct x509_store_st;
struct X509_VERIFY_PARAM_st;
struct asn1_string_st;

namespace monarch::net::openssl {

using SSL_CTX = ::ssl_ctx_st;
using SSL = ::ssl_st;
using EVP_PKEY = ::evp_pkey_st;
using X509 = ::x509_st;
using X509_NAME = ::X509_name_st;
using X509_EXTENSION = ::X509_extension_st;
using X509_VERIFY_PARAM = ::X509_VERIFY_PARAM_st;
using ASN1 = ::asn1_string_st;

// Values of OpenSSL's headers.
inline constexpr int k_ed25519 = 1087;
inline constexpr int k_alternative_names = 85;
inline constexpr int k_basic_constraints = 87;
inline constexpr int k_key_usage = 83;
inline constexpr int k_extended_key_usage = 126;
inline constexpr int k_ascii = 0x1001;
inline constexpr int k_pem = 1;
inline constexpr int k_verify_peer_or_fail = 3;
inline constexpr int k_want_read = 2;
inline constexpr int k_want_write = 3;
inline constexpr int k_syscall = 5;
inline constexpr int k_closed = 6;
inline constexpr int k_ctrl_mode = 33;
inline constexpr int k_ctrl_read_ahead = 41;
inline constexpr int k_ctrl_least_version = 123;
inline constexpr long k_mode_partial_and_moving = 3;
inline constexpr long k_tls_1_3 = 0x0304;
inline constexpr std::uint64_t k_ignore_unexpected_end = std::uint64_t{1} << 7;

struct Library {
  const ssl_method_st* (*TLS_method)();
  SSL_CTX* (*SSL_CTX_new)(const ssl_method_st*);
  void (*SSL_CTX_free)(SSL_CTX*);
  long (*SSL_CTX_ctrl)(SSL_CTX*, int, long, void*);
  std::uint64_t (*SSL_CTX_set_options)(SSL_CTX*, std::uint64_t);
  int (*SSL_CTX_set_num_tickets)(SSL_CTX*, std::size_t);
  void (*SSL_CTX_set_default_read_buffer_len)(SSL_CTX*, std::size_t);
  void (*SSL_CTX_set_verify)(SSL_CTX*, int, int (*)(int, void*));
  int (*SSL_CTX_use_certificate)(SSL_CTX*, X509*);
  int (*SSL_CTX_use_PrivateKey)(SSL_CTX*, EVP_PKEY*);
  int (*SSL_CTX_use_certificate_chain_file)(SSL_CTX*, const char*);
  int (*SSL_CTX_use_PrivateKey_file)(SSL_CTX*, const char*, int);
  int (*SSL_CTX_check_private_key)(const SSL_CTX*);
  int (*SSL_CTX_load_verify_locations)(SSL_CTX*, const char*, const char*);
  ::x509_store_st* (*SSL_CTX_get_cert_store)(const SSL_CTX*);
  SSL* (*SSL_new)(SSL_CTX*);
  void (*SSL_free)(SSL*);
  int (*SSL_set_fd)(SSL*, int);
  void (*SSL_set_accept_state)(SSL*);
  void (*SSL_set_connect_state)(SSL*);
  X509_VERIFY_PARAM* (*SSL_get0_param)(SSL*);
  int (*SSL_do_handshake)(SSL*);
  int (*SSL_read)(SSL*, void*, int);
  int (*SSL_write)(SSL*, const void*, int);
  int (*SSL_has_pending)(const SSL*);
  int (*SSL_get_error)(const SSL*, int);
  long (*SSL_get_verify_result)(const SSL*);
  int (*SSL_export_keying_material)(SSL*, unsigned char*, std::size_t, const char*, std::size_t,
                                    const unsigned char*, std::size_t, int);

  EVP_PKEY* (*EVP_PKEY_new_raw_private_key)(int, void*, const unsigned char*, std::size_t);
  void (*EVP_PKEY_free)(EVP_PKEY*);
  X509* (*X509_new)();
  void (*X509_free)(X509*);
  int (*X509_set_version)(X509*, long);
  ASN1* (*X509_get_serialNumber)(X509*);
  int (*ASN1_INTEGER_set_uint64)(ASN1*, std::uint64_t);
  ASN1* (*X509_getm_notBefore)(const X509*);
  ASN1* (*X509_getm_notAfter)(const X509*);
  ASN1* (*X509_gmtime_adj)(ASN1*, long);
  X509_NAME* (*X509_get_subject_name)(const X509*);
  int (*X509_NAME_add_entry_by_txt)(X509_NAME*, const char*, int, const unsigned char*, int, int,
                                    int);
  int (*X509_set_issuer_name)(X509*, const X509_NAME*);
  int (*X509_set_pubkey)(X509*, EVP_PKEY*);
  X509_EXTENSION* (*X509V3_EXT_conf_nid)(void*, void*, int, const char*);
  void (*X509_EXTENSION_free)(X509_EXTENSION*);
  int (*X509_add_ext)(X509*, X509_EXTENSION*, int);
  int (*X509_sign)(X509*, EVP_PKEY*, const ::evp_md_st*);
  int (*X509_STORE_add_cert)(::x509_store_st*, X509*);
  int (*X509_VERIFY_PARAM_set1_ip_asc)(X509_VERIFY_PARAM*, const char*);
  int (*X509_VERIFY_PARAM_set1_host)(X509_VERIFY_PARAM*, const char*, std::size_t);
  const char* (*X509_verify_cert_error_string)(long);
  unsigned long (*ERR_get_error)();
  void (*ERR_clear_error)();
  void (*ERR_error_string_n)(unsigned long, char*, std::size_t);
  const char* (*ERR_reason_error_string)(unsigned long);
};

// Opened once; where it cannot be, the error says what was looked for.
[[nodiscard]] const base::Result<Library>& library();

// The oldest error of this thread in OpenSSL's words; all of them are taken away.
[[nodiscard]] std::string take_error(const Library& ssl);

}  // namespace monarch::net::openssl
