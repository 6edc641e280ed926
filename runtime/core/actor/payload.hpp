// The bytes a message carries: what was pickled, and its out-of-band buffers.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "wire/frame.hpp"

namespace monarch::actor {

struct Payload {
  std::shared_ptr<const std::byte[]> storage;  // what the views point into
  base::Bytes data;
  std::vector<base::Bytes> buffers;

  [[nodiscard]] std::size_t size() const noexcept {
    std::size_t total = data.size();
    for (const base::Bytes buffer : buffers) total += buffer.size();
    return total;
  }
};

// A payload with bytes of its own; buffers are aligned as those of a frame are.
[[nodiscard]] inline Payload copy_payload(base::Bytes data, std::span<const base::Bytes> buffers) {
  std::size_t total = data.size();
  for (const base::Bytes buffer : buffers) total += wire::padding_at(total) + buffer.size();
  Payload payload;
  if (total == 0) {
    payload.buffers.assign(buffers.begin(), buffers.end());
    return payload;
  }
  const std::shared_ptr<std::byte[]> storage(new std::byte[total]);
  std::size_t end = 0;
  const auto put = [&](base::Bytes bytes) {
    const base::MutableBytes place(storage.get() + end, bytes.size());
    std::copy(bytes.begin(), bytes.end(), place.begin());
    end += bytes.size();
    return base::Bytes(place);
  };
  payload.data = put(data);
  payload.buffers.reserve(buffers.size());
  for (const base::Bytes buffer : buffers) {
    end += wire::padding_at(end);
    payload.buffers.push_back(put(buffer));
  }
  payload.storage = storage;
  return payload;
}

}  // namespace monarch::actor
