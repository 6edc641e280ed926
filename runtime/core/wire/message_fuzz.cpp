// Any bytes as any message: what is read stays within them, and what is written reads the same.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "wire/message.hpp"
#include "wire/transfer.hpp"

namespace {

namespace wire = monarch::wire;
using monarch::base::Bytes;

void require(bool condition) {
  if (!condition) std::abort();
}

bool within(Bytes part, Bytes whole) {
  return part.empty() || (part.data() >= whole.data() &&
                          part.data() + part.size() <= whole.data() + whole.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes whole(reinterpret_cast<const std::byte*>(data), size);
  Bytes rest = whole;
  if (const auto call = wire::read_call(rest); call.ok()) {
    require(within(rest, whole));
    require(within(std::as_bytes(std::span(call->endpoint)), whole));
    require(within(std::as_bytes(std::span(call->extent)), whole));
    std::array<std::byte, wire::k_call_head> head;
    wire::write_call(*call, head);
    std::vector<std::byte> again(head.begin(), head.end());
    for (const std::string_view text : {call->endpoint, call->extent}) {
      const Bytes bytes = std::as_bytes(std::span(text));
      again.insert(again.end(), bytes.begin(), bytes.end());
    }
    Bytes second(again);
    const auto read = wire::read_call(second);
    require(read.ok() && second.empty() && read->actor == call->actor &&
            read->endpoint == call->endpoint && read->inbox == call->inbox);
  }
  rest = whole;
  if (const auto reply = wire::read_reply(rest); reply.ok()) require(within(rest, whole));
  rest = whole;
  if (const auto cancel = wire::read_cancel(rest); cancel.ok()) require(within(rest, whole));
  rest = whole;
  if (const auto credit = wire::read_credit(rest); credit.ok()) require(within(rest, whole));
  rest = whole;
  if (const auto chunk = wire::read_chunk(rest); chunk.ok()) require(within(rest, whole));
  (void)wire::read_segment(whole);
  (void)wire::read_mapped(whole);
  if (const auto ids = wire::read_ids(whole); ids.ok()) require(ids->size() * 8 <= size);
  if (const auto attach = wire::read_attach(whole); attach.ok()) {
    require(attach->lengths.size() * 8 <= size);
    if (const auto layout = wire::layout_of(attach->lengths)) {
      require(layout->offsets.size() == attach->lengths.size());
      for (std::size_t i = 0; i < attach->lengths.size(); ++i) {
        require(layout->offsets[i] + attach->lengths[i] <= layout->total);
      }
    }
  }
  return 0;
}
