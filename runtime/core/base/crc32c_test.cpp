#include "base/crc32c.hpp"

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

using monarch::base::Bytes;
using monarch::base::crc32c;
namespace detail = monarch::base::detail;

TEST_CASE("known checksums of RFC 3720 and of the catalogue's check string") {
  CHECK(crc32c(std::as_bytes(std::span(std::string_view("123456789")))) == 0xE3069283);
  std::vector<std::byte> block(32);
  CHECK(crc32c(block) == 0x8A9136AA);
  block.assign(32, std::byte{0xFF});
  CHECK(crc32c(block) == 0x62A8AB43);
  for (std::size_t i = 0; i < 32; ++i) block[i] = static_cast<std::byte>(i);
  CHECK(crc32c(block) == 0x46DD794E);
  CHECK(crc32c({}) == 0);
}

TEST_CASE("the instruction and the table agree at every length and alignment") {
  std::vector<std::byte> block(300);
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::byte>(i * 131 + 7);
  for (std::size_t start = 0; start < 9; ++start) {
    for (std::size_t size = 0; size + start <= block.size(); ++size) {
      const Bytes part = Bytes(block).subspan(start, size);
      const auto table = detail::crc32c_table(part, 77);
      if (detail::crc32c_has_instruction()) REQUIRE(detail::crc32c_instruction(part, 77) == table);
      REQUIRE(crc32c(part, 77) == table);
    }
  }
}

TEST_CASE("a checksum goes on over pieces") {
  std::vector<std::byte> block(100, std::byte{42});
  for (std::size_t cut = 0; cut <= block.size(); ++cut) {
    const Bytes whole(block);
    CHECK(crc32c(whole.subspan(cut), crc32c(whole.first(cut))) == crc32c(whole));
  }
}
