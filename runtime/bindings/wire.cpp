// Frames for Python. Payloads are not copied: encode() hands back the caller's own objects between
// the bytes it adds, and the parts of a decoded frame are views, into the input where that is an
// immutable `bytes` holding the whole frame, else into the decoder's storage.
#include "wire.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "buffer.hpp"
#include "wire/decoder.hpp"
#include "wire/encoder.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace monarch::bindings {
namespace {

using base::Bytes;

struct PyFrame {
  wire::Frame frame;
  nb::object input;  // what the views point into, where the frame has no storage of its own
};

nb::list encode(nb::object message, const std::vector<nb::object>& buffers, std::uint8_t kind,
                std::uint64_t sequence, bool checksum, std::uint32_t limit) {
  const HeldBuffer held_message(message);
  std::vector<HeldBuffer> held;
  std::vector<Bytes> views;
  held.reserve(buffers.size());
  views.reserve(buffers.size());
  for (const nb::object& buffer : buffers) views.push_back(held.emplace_back(buffer).bytes());

  const auto frame = wire::encode(
      held_message.bytes(), views,
      {.kind = kind, .sequence = sequence, .checksum = checksum, .limit = limit});
  if (!frame) raise(frame.error());

  nb::list pieces;
  std::size_t part = 0;  // 0 is the message, then the buffers
  const auto is_part = [&](const std::byte* start) {
    while (part <= views.size()) {
      const Bytes view = part == 0 ? held_message.bytes() : views[part - 1];
      if (!view.empty()) return view.data() == start;
      ++part;
    }
    return false;
  };
  for (const Bytes piece : frame->pieces()) {
    if (is_part(piece.data())) {
      pieces.append(part == 0 ? message : buffers[part - 1]);
      ++part;
    } else {
      pieces.append(nb::bytes(piece.data(), piece.size()));
    }
  }
  return pieces;
}

nb::list feed(wire::Decoder& decoder, nb::object data) {
  if (!nb::isinstance<nb::bytes>(data)) {
    // A buffer that its owner may change or resize: the frames need bytes that stay.
    const HeldBuffer held(data);
    data = nb::bytes(held.bytes().data(), held.bytes().size());
  }
  const nb::bytes whole = nb::borrow<nb::bytes>(data);
  Bytes input(static_cast<const std::byte*>(whole.data()), whole.size());
  nb::list frames;
  while (!input.empty()) {
    auto result = decoder.next(input);
    if (!result) raise(result.error());
    if (!result->has_value()) continue;
    wire::Frame frame = **std::move(result);
    nb::object kept = frame.storage == nullptr ? nb::object(whole) : nb::none();
    frames.append(PyFrame{std::move(frame), std::move(kept)});
  }
  return frames;
}

}  // namespace

void bind_wire(nb::module_& module) {
  nb::class_<PyFrame>(module, "Frame", "A frame that was received.")
      .def_prop_ro("kind", [](const PyFrame& self) { return self.frame.header.kind; })
      .def_prop_ro("sequence", [](const PyFrame& self) { return self.frame.header.sequence; })
      .def_prop_ro("checksummed",
                   [](const PyFrame& self) {
                     return (self.frame.header.flags & wire::k_checksummed) != 0;
                   })
      .def_prop_ro(
          "message",
          [](nb::handle_t<PyFrame> self) {
            return memory_view({.owner = nb::borrow(self),
                                .bytes = nb::cast<PyFrame&>(self).frame.message});
          },
          nb::sig("def message(self) -> memoryview"),
          "The message, read-only; a view that keeps the frame alive.")
      .def_prop_ro(
          "buffers",
          [](nb::handle_t<PyFrame> self) {
            nb::list views;
            for (const Bytes buffer : nb::cast<PyFrame&>(self).frame.buffers) {
              views.append(memory_view({.owner = nb::borrow(self), .bytes = buffer}));
            }
            return views;
          },
          nb::sig("def buffers(self) -> list[memoryview]"),
          "The out-of-band buffers, read-only; views that keep the frame alive.");

  nb::class_<wire::Decoder>(
      module, "Decoder",
      "Frames from a byte stream that arrives in pieces of any size.\n\n"
      "It holds at most one unfinished frame of `limit` bytes. An error is final.")
      .def(
          "__init__",
          [](wire::Decoder* self, std::uint32_t limit, bool require_checksums,
             std::uint64_t first_sequence) {
            new (self) wire::Decoder({.limit = limit,
                                      .checksums = require_checksums ? wire::Checksums::kRequire
                                                                     : wire::Checksums::kAccept,
                                      .first_sequence = first_sequence});
          },
          nb::kw_only(), "limit"_a = wire::k_default_limit, "require_checksums"_a = false,
          "first_sequence"_a = 0)
      .def("feed", &feed, "data"_a,
           nb::sig("def feed(self, data: typing_extensions.Buffer) -> list[Frame]"),
           "Frames that `data` completes, in order.\n\n"
           "Frames that lie whole in a `bytes` object are views into it and keep it alive; from\n"
           "any other object the bytes are copied once.\n\n"
           "Raises:\n    FrameError: see its codes; the stream cannot go on after it.")
      .def("set_limit", &wire::Decoder::set_limit, "limit"_a,
           "Accept frames of up to `limit` bytes after their header, from the next one on.")
      .def_prop_ro("expected_sequence", &wire::Decoder::expected_sequence)
      .def_prop_ro("pending", &wire::Decoder::pending,
                   "Bytes held of a frame that is not complete.");

  module.def("encode", &encode, "message"_a, "buffers"_a = nb::list(), nb::kw_only(), "kind"_a = 0,
             "sequence"_a = 0, "checksum"_a = false, "limit"_a = wire::k_default_limit,
             nb::sig("def encode(message: typing_extensions.Buffer, buffers: "
                     "collections.abc.Sequence[typing_extensions.Buffer] = [], *, kind: int = 0, "
                     "sequence: int = 0, checksum: bool = False, limit: int = 67108864) -> "
                     "list[typing_extensions.Buffer]"),
             "The pieces of one frame, in order, for a gathering write.\n\n"
             "`message` and `buffers` are among the pieces themselves, not copies of them.\n\n"
             "Raises:\n    FrameError: it would be larger than `limit`, or has too many buffers.");

  module.attr("DEFAULT_LIMIT") = wire::k_default_limit;
  module.attr("HEADER_SIZE") = wire::k_header_size;
}

}  // namespace monarch::bindings
