#include "monarch/native/collectives.hpp"

#include <algorithm>
#include <utility>

#include "collectives_library.hpp"
#include "driver.hpp"

namespace monarch::native {
namespace {

constexpr int vendor_dtype(DType dtype) {
  switch (dtype) {
    case DType::int8: return 0;
    case DType::uint8: return 1;
    case DType::int32: return 2;
    case DType::int64: return 4;
    case DType::float16: return 6;
    case DType::float32: return 7;
    case DType::float64: return 8;
    case DType::bfloat16: return 9;
  }
  return -1;
}

constexpr int vendor_reduction(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return 0;
    case Reduction::product: return 1;
    case Reduction::maximum: return 2;
    case Reduction::minimum: return 3;
    case Reduction::average: return 4;
  }
  return -1;
}

const void* readable(Address address) { return reinterpret_cast<const void*>(address.value); }
void* writable(Address address) { return reinterpret_cast<void*>(address.value); }

CollectivesHandle live(void* handle) { return static_cast<CollectivesHandle>(handle); }

/// Runs one call of the library with the communicator's device current.
template <class Function, class... Arguments>
Status operate(int device, void* handle, const char* context,
               Function CollectivesLibrary::* function, Arguments... arguments) {
  const Result<const CollectivesLibrary*> library = collectives_library();
  if (!library) {
    return library.error();
  }
  if (handle == nullptr) {
    return Error{ErrorCode::invalid_argument, "the communicator was released or aborted", context};
  }
  const Result<ContextScope> scope = ContextScope::enter(device);
  if (!scope) {
    return scope.error();
  }
  const CollectivesStatus status = (library.value()->*function)(arguments...);
  if (status != k_collectives_success && status != k_collectives_in_progress) {
    return collectives_error(*library.value(), status, live(handle), context);
  }
  return {};
}

Status grouping(CollectivesStatus (*CollectivesLibrary::*function)(), const char* context) {
  const Result<const CollectivesLibrary*> library = collectives_library();
  if (!library) {
    return library.error();
  }
  const CollectivesStatus status = (library.value()->*function)();
  if (status != k_collectives_success && status != k_collectives_in_progress) {
    return collectives_error(*library.value(), status, nullptr, context);
  }
  return {};
}

}  // namespace

Result<UniqueId> make_unique_id() {
  const Result<const CollectivesLibrary*> library = collectives_library();
  if (!library) {
    return library.error();
  }
  CollectivesUniqueId made{};
  if (const CollectivesStatus status = library.value()->get_unique_id(&made);
      status != k_collectives_success) {
    return collectives_error(*library.value(), status, nullptr, "making a unique id");
  }
  UniqueId id{};
  static_assert(sizeof(made.internal) == sizeof(id));
  std::copy(std::begin(made.internal), std::end(made.internal), id.begin());
  return id;
}

Status group_start() { return grouping(&CollectivesLibrary::group_start, "starting a group"); }

Status group_end() { return grouping(&CollectivesLibrary::group_end, "ending a group"); }

Result<Communicator> Communicator::create(int device, const UniqueId& id, int rank, int size) {
  constexpr const char* k_context = "creating a communicator";
  if (size < 1 || rank < 0 || rank >= size) {
    return Error{ErrorCode::invalid_argument,
                 "rank " + std::to_string(rank) + " of " + std::to_string(size) +
                     ", wanted 0 <= rank < size",
                 k_context};
  }
  const Result<const CollectivesLibrary*> library = collectives_library();
  if (!library) {
    return library.error();
  }
  const Result<ContextScope> scope = ContextScope::enter(device);
  if (!scope) {
    return scope.error();
  }
  CollectivesUniqueId shared{};
  std::copy(id.begin(), id.end(), std::begin(shared.internal));
  CollectivesHandle handle{};
  if (const CollectivesStatus status = library.value()->init_rank(&handle, size, shared, rank);
      status != k_collectives_success) {
    return collectives_error(*library.value(), status, nullptr, k_context);
  }
  return Communicator(device, handle, rank, size);
}

Communicator::Communicator(Communicator&& other) noexcept
    : device_(other.device_),
      handle_(std::exchange(other.handle_, nullptr)),
      rank_(other.rank_),
      size_(other.size_) {}

Communicator& Communicator::operator=(Communicator&& other) noexcept {
  if (this != &other) {
    (void)release();
    device_ = other.device_;
    handle_ = std::exchange(other.handle_, nullptr);
    rank_ = other.rank_;
    size_ = other.size_;
  }
  return *this;
}

Communicator::~Communicator() { (void)release(); }

Status Communicator::all_reduce(Address send, Address receive, std::size_t count, DType dtype,
                                Reduction reduction, const Stream& stream) {
  return operate(device_, handle_, "all-reduce", &CollectivesLibrary::all_reduce, readable(send),
                 writable(receive), count, vendor_dtype(dtype), vendor_reduction(reduction),
                 live(handle_), stream.handle());
}

Status Communicator::all_gather(Address send, Address receive, std::size_t count, DType dtype,
                                const Stream& stream) {
  return operate(device_, handle_, "all-gather", &CollectivesLibrary::all_gather, readable(send),
                 writable(receive), count, vendor_dtype(dtype), live(handle_), stream.handle());
}

Status Communicator::reduce_scatter(Address send, Address receive, std::size_t count, DType dtype,
                                    Reduction reduction, const Stream& stream) {
  return operate(device_, handle_, "reduce-scatter", &CollectivesLibrary::reduce_scatter,
                 readable(send), writable(receive), count, vendor_dtype(dtype),
                 vendor_reduction(reduction), live(handle_), stream.handle());
}

Status Communicator::broadcast(Address send, Address receive, std::size_t count, DType dtype,
                               int root, const Stream& stream) {
  return operate(device_, handle_, "broadcast", &CollectivesLibrary::broadcast, readable(send),
                 writable(receive), count, vendor_dtype(dtype), root, live(handle_),
                 stream.handle());
}

Status Communicator::reduce(Address send, Address receive, std::size_t count, DType dtype,
                            Reduction reduction, int root, const Stream& stream) {
  return operate(device_, handle_, "reduce", &CollectivesLibrary::reduce, readable(send),
                 writable(receive), count, vendor_dtype(dtype), vendor_reduction(reduction), root,
                 live(handle_), stream.handle());
}

Status Communicator::send(Address data, std::size_t count, DType dtype, int peer,
                          const Stream& stream) {
  return operate(device_, handle_, "send", &CollectivesLibrary::send, readable(data), count,
                 vendor_dtype(dtype), peer, live(handle_), stream.handle());
}

Status Communicator::receive(Address data, std::size_t count, DType dtype, int peer,
                             const Stream& stream) {
  return operate(device_, handle_, "receive", &CollectivesLibrary::receive, writable(data), count,
                 vendor_dtype(dtype), peer, live(handle_), stream.handle());
}

Result<std::unique_ptr<Communicator>> Communicator::split(int color, int key) {
  constexpr const char* k_context = "splitting a communicator";
  constexpr int k_no_color = -1;
  const Result<const CollectivesLibrary*> library = collectives_library();
  if (!library) {
    return library.error();
  }
  if (library.value()->split == nullptr) {
    return Error{ErrorCode::unsupported,
                 library.value()->path + " has no split; version 2.18 of its interface is needed",
                 k_context};
  }
  CollectivesHandle made{};
  void* const defaults = nullptr;
  if (Status done = operate(device_, handle_, k_context, &CollectivesLibrary::split, live(handle_),
                            color < 0 ? k_no_color : color, key, &made, defaults);
      !done) {
    return done.error();
  }
  if (made == nullptr) {
    return std::unique_ptr<Communicator>();
  }
  Communicator part(device_, made, 0, 0);
  if (Status got =
          operate(device_, made, k_context, &CollectivesLibrary::user_rank, made, &part.rank_);
      !got) {
    return got.error();
  }
  if (Status got = operate(device_, made, k_context, &CollectivesLibrary::count, made, &part.size_);
      !got) {
    return got.error();
  }
  return std::make_unique<Communicator>(std::move(part));
}

Status Communicator::async_error() {
  constexpr const char* k_context = "collectives";
  CollectivesStatus found = k_collectives_success;
  if (Status asked = operate(device_, handle_, k_context, &CollectivesLibrary::async_error,
                             live(handle_), &found);
      !asked) {
    return asked;
  }
  if (found == k_collectives_success || found == k_collectives_in_progress) {
    return {};
  }
  return collectives_error(*collectives_library().value(), found, live(handle_), k_context);
}

Status Communicator::abort() {
  void* handle = std::exchange(handle_, nullptr);
  if (handle == nullptr) {
    return {};
  }
  return operate(device_, handle, "aborting a communicator", &CollectivesLibrary::abort,
                 live(handle));
}

Status Communicator::release() {
  void* handle = std::exchange(handle_, nullptr);
  if (handle == nullptr) {
    return {};
  }
  return operate(device_, handle, "destroying a communicator", &CollectivesLibrary::destroy,
                 live(handle));
}

}  // namespace monarch::native
