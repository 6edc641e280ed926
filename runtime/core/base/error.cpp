#include "base/error.hpp"

namespace monarch::base {

std::string_view name(Code code) noexcept {
  switch (code) {
    case Code::kMalformed: return "malformed";
    case Code::kVersion: return "version";
    case Code::kLimit: return "limit";
    case Code::kCorrupt: return "corrupt";
    case Code::kSequence: return "sequence";
    case Code::kArgument: return "argument";
    case Code::kSystem: return "system";
  }
  return "unknown";
}

}  // namespace monarch::base
