#include "collectives_library.hpp"

#include <dlfcn.h>

#include <mutex>
#include <optional>
#include <vector>

#include "platform.hpp"

namespace monarch::native {
namespace {

std::mutex library_mutex;
std::optional<CollectivesLibrary> library_in_use;

template <class Function>
void look_up(void* handle, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, symbol));
}

template <class Function>
void require(void* handle, const char* symbol, Function& function, std::string& missing) {
  look_up(handle, symbol, function);
  if (function == nullptr) {
    missing += missing.empty() ? symbol : std::string(", ") + symbol;
  }
}

Result<CollectivesLibrary> bind_library(void* handle, const std::string& name) {
  CollectivesLibrary library;
  std::string missing;
  require(handle, "ncclGetVersion", library.get_version, missing);
  require(handle, "ncclGetUniqueId", library.get_unique_id, missing);
  require(handle, "ncclCommInitRank", library.init_rank, missing);
  require(handle, "ncclCommDestroy", library.destroy, missing);
  require(handle, "ncclCommAbort", library.abort, missing);
  require(handle, "ncclCommGetAsyncError", library.async_error, missing);
  require(handle, "ncclCommUserRank", library.user_rank, missing);
  require(handle, "ncclCommCount", library.count, missing);
  require(handle, "ncclGetErrorString", library.error_string, missing);
  require(handle, "ncclGroupStart", library.group_start, missing);
  require(handle, "ncclGroupEnd", library.group_end, missing);
  require(handle, "ncclAllReduce", library.all_reduce, missing);
  require(handle, "ncclAllGather", library.all_gather, missing);
  require(handle, "ncclReduceScatter", library.reduce_scatter, missing);
  require(handle, "ncclBroadcast", library.broadcast, missing);
  require(handle, "ncclReduce", library.reduce, missing);
  require(handle, "ncclSend", library.send, missing);
  require(handle, "ncclRecv", library.receive, missing);
  look_up(handle, "ncclCommSplit", library.split);
  look_up(handle, "ncclGetLastError", library.last_error);
  if (!missing.empty()) {
    return Error{ErrorCode::symbol_missing, name + " lacks " + missing,
                 "opening the collectives library"};
  }
  Dl_info found{};
  const bool known = dladdr(reinterpret_cast<void*>(library.get_version), &found) != 0;
  library.path = known && found.dli_fname != nullptr ? found.dli_fname : name;
  return library;
}

/// The handle of the first file that loads; what was tried goes into `tried`.
void* open_first(std::span<const std::string> candidates, std::string& name, std::string& tried) {
  name = k_collectives_library;
  if (void* mapped = dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD); mapped != nullptr) {
    return mapped;
  }
  std::vector<std::string> files(candidates.begin(), candidates.end());
  files.emplace_back(k_collectives_library);
  for (const std::string& file : files) {
    if (void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      name = file;
      return handle;
    }
    const char* reason = dlerror();
    tried += (tried.empty() ? "" : "; ") + std::string(reason != nullptr ? reason : file);
  }
  return nullptr;
}

}  // namespace

Result<CollectivesInfo> open_collectives(std::span<const std::string> candidates) {
  constexpr const char* k_context = "opening the collectives library";
  const std::scoped_lock lock(library_mutex);
  if (!library_in_use) {
    std::string name;
    std::string tried;
    void* handle = open_first(candidates, name, tried);
    if (handle == nullptr) {
      return Error{ErrorCode::library_missing,
                   std::string(k_collectives_library) + " was not found (" + tried + "); " +
                       k_collectives_remedy,
                   k_context};
    }
    Result<CollectivesLibrary> bound = bind_library(handle, name);
    if (!bound) {
      return bound.error();
    }
    library_in_use = std::move(bound).value();
  }
  int version = 0;
  if (const CollectivesStatus status = library_in_use->get_version(&version);
      status != k_collectives_success) {
    return collectives_error(*library_in_use, status, nullptr, k_context);
  }
  return CollectivesInfo{library_in_use->path, version};
}

Result<const CollectivesLibrary*> collectives_library() {
  const std::scoped_lock lock(library_mutex);
  if (!library_in_use) {
    return Error{ErrorCode::library_missing, "open_collectives was not called", "collectives"};
  }
  return &*library_in_use;
}

Error collectives_error(const CollectivesLibrary& library, CollectivesStatus status,
                        CollectivesHandle handle, const char* context) {
  ErrorCode code = ErrorCode::device_failure;
  if (status == k_collectives_remote_error) {
    code = ErrorCode::peer_failed;
  } else if (status == k_collectives_invalid_argument) {
    code = ErrorCode::invalid_argument;
  }
  std::string message = library.error_string(status);
  if (library.last_error != nullptr) {
    const char* detail = library.last_error(handle);
    if (detail != nullptr && *detail != '\0') {
      message += std::string(": ") + detail;
    }
  }
  return {code, message + " (" + std::to_string(status) + ")", context};
}

}  // namespace monarch::native
