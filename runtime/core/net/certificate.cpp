#include "net/certificate.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string_view>
#include <utility>

namespace monarch::net {
namespace {

using base::Code;
using base::Error;
using openssl::EVP_PKEY;
using openssl::Library;
using openssl::X509;

constexpr std::size_t kSeed = 32;
constexpr long kVersion3 = 2;               // as certificates count
constexpr long kSkew = 24L * 60 * 60;       // clocks may differ by a day
constexpr long kAuthorityAge = 10L * 365 * 24 * 60 * 60;
constexpr std::string_view kAuthority = "monarch cluster";
constexpr std::string_view kProcess = "monarch process";

const Library& ssl() { return *openssl::library(); }

Error failure(const char* what) {
  return Error{Code::kSystem, std::string(what) + ": " + openssl::take_error(ssl())};
}

base::Result<Key> key_from(base::Bytes seed) {
  if (seed.size() != kSeed) return Error{Code::kArgument, "a key is drawn from 32 bytes"};
  Key key(ssl().EVP_PKEY_new_raw_private_key(openssl::k_ed25519, nullptr,
                                             reinterpret_cast<const unsigned char*>(seed.data()),
                                             seed.size()));
  if (key == nullptr) return failure("no Ed25519 key can be made");
  return key;
}

bool extend(X509* certificate, int which, const char* value) {
  auto* const extension = ssl().X509V3_EXT_conf_nid(nullptr, nullptr, which, value);
  if (extension == nullptr) return false;
  const bool added = ssl().X509_add_ext(certificate, extension, -1) == 1;
  ssl().X509_EXTENSION_free(extension);
  return added;
}

bool name(X509* certificate, std::string_view text) {
  return ssl().X509_NAME_add_entry_by_txt(
             ssl().X509_get_subject_name(certificate), "CN", openssl::k_ascii,
             reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()), -1,
             0) == 1;
}

// Without extensions, issuer and signature.
Certificate blank(std::string_view subject, EVP_PKEY* key, long from, long until) {
  Certificate made(ssl().X509_new());
  if (made == nullptr) return nullptr;
  std::random_device random;
  const std::uint64_t serial = (std::uint64_t{random()} << 31U | random()) | 1U;
  const bool good = ssl().X509_set_version(made.get(), kVersion3) == 1 &&
                    ssl().ASN1_INTEGER_set_uint64(ssl().X509_get_serialNumber(made.get()), serial) == 1 &&
                    ssl().X509_gmtime_adj(ssl().X509_getm_notBefore(made.get()), from) != nullptr &&
                    ssl().X509_gmtime_adj(ssl().X509_getm_notAfter(made.get()), until) != nullptr &&
                    name(made.get(), subject) && ssl().X509_set_pubkey(made.get(), key) == 1;
  return good ? std::move(made) : nullptr;
}

}  // namespace

void FreeCertificate::operator()(X509* certificate) const noexcept { ssl().X509_free(certificate); }
void FreeKey::operator()(EVP_PKEY* key) const noexcept { ssl().EVP_PKEY_free(key); }

base::Result<Issued> issue(base::Bytes authority, base::Bytes own, const std::string& names,
                           long seconds) {
  const auto& found = openssl::library();
  if (!found) return found.error();
  auto root = key_from(authority);
  if (!root) return std::move(root).error();
  auto key = key_from(own);
  if (!key) return std::move(key).error();

  Certificate top = blank(kAuthority, root->get(), -kAuthorityAge, kAuthorityAge);
  if (top == nullptr || !extend(top.get(), openssl::k_basic_constraints, "critical,CA:TRUE") ||
      !extend(top.get(), openssl::k_key_usage, "critical,keyCertSign") ||
      ssl().X509_set_issuer_name(top.get(), ssl().X509_get_subject_name(top.get())) != 1 ||
      ssl().X509_sign(top.get(), root->get(), nullptr) == 0) {
    return failure("no certificate of the authority can be made");
  }
  Certificate leaf = blank(kProcess, key->get(), std::min(seconds, 0L) - kSkew, seconds);
  if (leaf == nullptr || !extend(leaf.get(), openssl::k_basic_constraints, "critical,CA:FALSE") ||
      !extend(leaf.get(), openssl::k_key_usage, "critical,digitalSignature") ||
      !extend(leaf.get(), openssl::k_extended_key_usage, "serverAuth,clientAuth") ||
      (!names.empty() && !extend(leaf.get(), openssl::k_alternative_names, names.c_str())) ||
      ssl().X509_set_issuer_name(leaf.get(), ssl().X509_get_subject_name(top.get())) != 1 ||
      ssl().X509_sign(leaf.get(), root->get(), nullptr) == 0) {
    return failure("no certificate of this process can be made");
  }
  return Issued{std::move(top), std::move(leaf), *std::move(key)};
}

}  // namespace monarch::net
