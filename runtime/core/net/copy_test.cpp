#include "net/copy.hpp"

#include <doctest/doctest.h>

#include <sys/mman.h>

#include <cstdint>
#include <vector>

using monarch::base::Bytes;
using monarch::base::MutableBytes;

namespace {

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint32_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

}  // namespace

TEST_CASE("a copy is exact whatever its size and alignment, and writes nothing else") {
  const std::size_t large = monarch::net::kStreamingCopy;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4097}, large - 1,
                                 large, large + 1, large + 63, large + 64}) {
    const std::vector<std::byte> source = pattern(size + 3);
    for (const std::size_t offset : {0U, 1U, 48U, 63U}) {
      std::vector<std::byte> target(size + 128, std::byte{0x5A});
      monarch::net::copy_payload(MutableBytes(target).subspan(offset, size),
                                 Bytes(source).subspan(3, size));
      bool same = true;
      for (std::size_t i = 0; i < target.size(); ++i) {
        const bool inside = i >= offset && i < offset + size;
        same = same && target[i] == (inside ? source[i - offset + 3] : std::byte{0x5A});
      }
      CAPTURE(size);
      CAPTURE(offset);
      CHECK(same);
    }
  }
}

TEST_CASE("memory advised for huge pages keeps what is in it, however it is aligned") {
  const std::size_t size = std::size_t{8} << 20;
  void* const mapped =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapped != MAP_FAILED);
  const MutableBytes memory(static_cast<std::byte*>(mapped), size);
  memory[100] = std::byte{7};
  for (const std::size_t length : {std::size_t{0}, std::size_t{100}, size - 200}) {
    monarch::net::prepare_fresh(memory.subspan(150, length));
  }
  CHECK(memory[100] == std::byte{7});
  memory[size - 1] = std::byte{9};
  CHECK(memory[size - 1] == std::byte{9});
  ::munmap(mapped, size);
}
