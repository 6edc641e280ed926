// What failed, for callers that branch (code) and for people (message: what, where, wanted).
#pragma once

#include <string>
#include <string_view>

namespace monarch::base {

enum class Code {
  kMalformed,  // bytes that are no frame of ours
  kVersion,    // a frame of another version of the protocol
  kLimit,      // more than was agreed
  kCorrupt,    // a checksum that does not fit
  kSequence,   // a replayed or skipped number
  kArgument,   // the caller asked for what cannot be
  kSystem,     // the operating system refused
};

[[nodiscard]] std::string_view name(Code code) noexcept;

struct Error {
  Code code;
  std::string message;
};

}  // namespace monarch::base
