#include "wire/frame.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "base/crc32c.hpp"

namespace monarch::wire {
namespace {

using base::Code;
using base::Error;

constexpr std::array<std::byte, 2> kMagic = {std::byte{'M'}, std::byte{0xF2}};
constexpr std::size_t kChecked = 20;

std::string hex(Bytes bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    std::array<char, 4> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x ", static_cast<unsigned>(byte));
    text += digits.data();
  }
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace

void write_header(const Header& header, base::MutableBytes out) noexcept {
  std::copy(kMagic.begin(), kMagic.end(), out.begin());
  out[2] = std::byte{k_version};
  out[3] = std::byte{header.kind};
  base::store_little(out.subspan(4), header.flags);
  base::store_little(out.subspan(6), header.buffers);
  base::store_little(out.subspan(8), header.sequence);
  base::store_little(out.subspan(16), header.length);
  base::store_little(out.subspan(kChecked), base::crc32c(out.first(kChecked)));
}

base::Result<void> check_prefix(Bytes bytes) {
  const std::size_t magic = std::min(bytes.size(), kMagic.size());
  if (!std::equal(kMagic.begin(), kMagic.begin() + static_cast<std::ptrdiff_t>(magic), bytes.begin())) {
    return Error{Code::kMalformed,
                 "no frame: it starts with " + hex(bytes.first(std::min<std::size_t>(bytes.size(), 8))) +
                     ", wanted " + hex(kMagic) + "; the peer does not speak this protocol"};
  }
  if (bytes.size() > 2 && bytes[2] != std::byte{k_version}) {
    return Error{Code::kVersion, "frame of protocol version " +
                                     std::to_string(std::to_integer<unsigned>(bytes[2])) +
                                     ", this side speaks " + std::to_string(k_version)};
  }
  return {};
}

base::Result<Header> read_header(Bytes bytes) {
  if (auto prefix = check_prefix(bytes); !prefix) return prefix.error();
  const auto stated = base::load_little<std::uint32_t>(bytes.subspan(kChecked));
  if (stated != base::crc32c(bytes.first(kChecked))) {
    return Error{Code::kCorrupt, "frame header " + hex(bytes.first(k_header_size)) +
                                     " does not fit its own checksum"};
  }
  const Header header{
      .kind = std::to_integer<std::uint8_t>(bytes[3]),
      .flags = base::load_little<std::uint16_t>(bytes.subspan(4)),
      .buffers = base::load_little<std::uint16_t>(bytes.subspan(6)),
      .sequence = base::load_little<std::uint64_t>(bytes.subspan(8)),
      .length = base::load_little<std::uint32_t>(bytes.subspan(16)),
  };
  if ((header.flags & ~k_known_flags) != 0) {
    return Error{Code::kMalformed, "frame " + std::to_string(header.sequence) +
                                       " has unknown flags " + std::to_string(header.flags) +
                                       "; known are " + std::to_string(k_known_flags)};
  }
  return header;
}

}  // namespace monarch::wire
