#include "monarch/native/checksum.hpp"

#include <doctest/doctest.h>

#include <set>
#include <vector>

namespace {

using monarch::native::checksum_of;
using Bytes = std::vector<unsigned char>;

std::uint64_t sum(const Bytes& bytes) { return checksum_of(bytes.data(), bytes.size()); }

}  // namespace

TEST_CASE("any changed byte changes the checksum") {
  Bytes bytes(67, 0x5A);
  std::set<std::uint64_t> seen{sum(bytes)};
  for (unsigned char& byte : bytes) {
    byte ^= 1;
    CHECK(seen.insert(sum(bytes)).second);
    byte ^= 1;
  }
}

TEST_CASE("moved words and trailing zeros count") {
  Bytes bytes(32);
  bytes[0] = 1;
  Bytes moved(32);
  moved[8] = 1;
  CHECK(sum(bytes) != sum(moved));
  CHECK(sum(Bytes(8)) != sum(Bytes(9)));
  CHECK(sum(Bytes()) != sum(Bytes(1)));
}

TEST_CASE("the value is what it always was") {
  const unsigned char text[] = {'a', 'b', 'c'};
  CHECK(checksum_of(text, sizeof text) == 0x5A5EBC601578E647ULL);
}
