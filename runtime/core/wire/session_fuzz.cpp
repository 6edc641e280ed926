// Any order of sending, writing, acknowledging and breaking: what the other side would read is every
// frame once, in order; what it cannot have taken is refused and changes nothing. Each byte of the
// input is a step, the next one its argument.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "wire/session.hpp"

namespace {

namespace wire = monarch::wire;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  wire::SendLog log;
  std::vector<std::size_t> sizes;
  std::size_t taken = 0;
  std::size_t partial = 0;
  std::size_t told = 0;
  for (std::size_t at = 0; at + 1 < size; at += 2) {
    const std::size_t argument = data[at + 1];
    switch (data[at] % 5) {
      case 0: {
        sizes.push_back(1 + argument * argument);
        const std::vector<std::byte> frame(sizes.back(), static_cast<std::byte>(sizes.size()));
        log.begin();
        log.append(frame);
        break;
      }
      case 1: {
        const monarch::base::Bytes next = log.next();
        std::size_t written = std::min(next.size(), argument * 64);
        log.wrote(written);
        for (std::size_t place = 0; written > 0;) {
          require(taken < sizes.size());
          const std::size_t part = std::min(written, sizes[taken] - partial);
          require(next[place] == static_cast<std::byte>(taken + 1));
          require(next[place + part - 1] == static_cast<std::byte>(taken + 1));
          place += part;
          written -= part;
          partial += part;
          if (partial == sizes[taken]) {
            ++taken;
            partial = 0;
          }
        }
        break;
      }
      case 2:
        require(log.acknowledged(taken).ok());
        told = taken;
        break;
      case 3:
        require(log.resume(taken).ok());
        told = taken;
        partial = 0;
        break;
      default: {
        const std::size_t held = log.held();
        require(!log.acknowledged(sizes.size() + 1 + argument).ok());
        if (told > 0) require(!log.resume(told - 1).ok());
        require(log.held() == held);
      }
    }
    require(log.frames() == sizes.size());
  }
  return 0;
}
