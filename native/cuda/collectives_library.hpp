#pragma once

#include <cstddef>
#include <string>

#include "monarch/native/collectives.hpp"
#include "monarch/native/error.hpp"

namespace monarch::native {

/// The binary interface of the collectives library, which both vendors share name for name. Written
/// out here because its header comes with a library of hundreds of megabytes, and only opened at
/// run time. Values: NCCL's public documentation of ncclDataType_t, ncclRedOp_t, ncclResult_t.
struct CollectivesUniqueId {
  char internal[128];
};
using CollectivesHandle = struct CollectivesOpaque*;
using CollectivesStream = void*;
using CollectivesStatus = int;

inline constexpr CollectivesStatus k_collectives_success = 0;
inline constexpr CollectivesStatus k_collectives_invalid_argument = 4;
inline constexpr CollectivesStatus k_collectives_remote_error = 6;
inline constexpr CollectivesStatus k_collectives_in_progress = 7;

struct CollectivesLibrary {
  CollectivesStatus (*get_version)(int* version){};
  CollectivesStatus (*get_unique_id)(CollectivesUniqueId* id){};
  CollectivesStatus (*init_rank)(CollectivesHandle* handle, int size, CollectivesUniqueId id,
                                 int rank){};
  CollectivesStatus (*destroy)(CollectivesHandle handle){};
  CollectivesStatus (*abort)(CollectivesHandle handle){};
  CollectivesStatus (*async_error)(CollectivesHandle handle, CollectivesStatus* status){};
  CollectivesStatus (*user_rank)(CollectivesHandle handle, int* rank){};
  CollectivesStatus (*count)(CollectivesHandle handle, int* size){};
  const char* (*error_string)(CollectivesStatus status){};
  CollectivesStatus (*group_start)(){};
  CollectivesStatus (*group_end)(){};
  CollectivesStatus (*all_reduce)(const void* send, void* receive, std::size_t count, int dtype,
                                  int reduction, CollectivesHandle handle,
                                  CollectivesStream stream){};
  CollectivesStatus (*all_gather)(const void* send, void* receive, std::size_t count, int dtype,
                                  CollectivesHandle handle, CollectivesStream stream){};
  CollectivesStatus (*reduce_scatter)(const void* send, void* receive, std::size_t count, int dtype,
                                      int reduction, CollectivesHandle handle,
                                      CollectivesStream stream){};
  CollectivesStatus (*broadcast)(const void* send, void* receive, std::size_t count, int dtype,
                                 int root, CollectivesHandle handle, CollectivesStream stream){};
  CollectivesStatus (*reduce)(const void* send, void* receive, std::size_t count, int dtype,
                              int reduction, int root, CollectivesHandle handle,
                              CollectivesStream stream){};
  CollectivesStatus (*send)(const void* data, std::size_t count, int dtype, int peer,
                            CollectivesHandle handle, CollectivesStream stream){};
  CollectivesStatus (*receive)(void* data, std::size_t count, int dtype, int peer,
                               CollectivesHandle handle, CollectivesStream stream){};
  /// Absent before 2.18 of the library.
  CollectivesStatus (*split)(CollectivesHandle handle, int color, int key, CollectivesHandle* made,
                             void* configuration){};
  /// Absent before 2.13.
  const char* (*last_error)(CollectivesHandle handle){};

  std::string path;
};

/// The library once `open_collectives` has succeeded, else an Error that says to call it.
Result<const CollectivesLibrary*> collectives_library();

/// An Error for a status of the library; `handle` may be null.
Error collectives_error(const CollectivesLibrary& library, CollectivesStatus status,
                        CollectivesHandle handle, const char* context);

}  // namespace monarch::native
