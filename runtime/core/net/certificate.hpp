// Certificates made by a process itself: of an authority whose key is drawn from what all who belong
// together hold, and of the process, signed by it. Ed25519.
#pragma once

#include <memory>
#include <string>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "net/openssl.hpp"

namespace monarch::net {

struct FreeCertificate {
  void operator()(openssl::X509* certificate) const noexcept;
};
struct FreeKey {
  void operator()(openssl::EVP_PKEY* key) const noexcept;
};
using Certificate = std::unique_ptr<openssl::X509, FreeCertificate>;
using Key = std::unique_ptr<openssl::EVP_PKEY, FreeKey>;

struct Issued {
  Certificate authority;
  Certificate certificate;
  Key key;
};

// Keys from 32 bytes each. `names` as in a certificate's alternative names; `seconds` may lie in the
// past, for tests.
[[nodiscard]] base::Result<Issued> issue(base::Bytes authority, base::Bytes own,
                                         const std::string& names, long seconds);

}  // namespace monarch::net
