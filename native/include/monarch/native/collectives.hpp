#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "monarch/native/address.hpp"
#include "monarch/native/dtype.hpp"
#include "monarch/native/error.hpp"
#include "monarch/native/stream.hpp"

namespace monarch::native {

enum class Reduction { sum, product, maximum, minimum, average };

using UniqueId = std::array<char, 128>;

struct CollectivesInfo {
  std::string library;
  int version{};
};

/// Opens the vendor's collectives library once per process: the copy already mapped if there is
/// one, else the first of `candidates` (absolute paths) that loads, else the loader's own search.
/// Error `library_missing` names every file tried and why it failed.
Result<CollectivesInfo> open_collectives(std::span<const std::string> candidates);

/// All functions below need `open_collectives` to have succeeded.
Result<UniqueId> make_unique_id();

/// Between the two calls, operations of this thread are collected and then start together.
Status group_start();
Status group_end();

/// One rank of a communicator on one device. Operations queue on the stream and return; counts are
/// in elements. Move-only; destroyed with its owner, which waits for outstanding operations.
class Communicator {
 public:
  /// Blocks until all `size` ranks have called it with the same id.
  static Result<Communicator> create(int device, const UniqueId& id, int rank, int size);

  Communicator(Communicator&& other) noexcept;
  Communicator& operator=(Communicator&& other) noexcept;
  ~Communicator();

  int device() const { return device_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  Status all_reduce(Address send, Address receive, std::size_t count, DType dtype,
                    Reduction reduction, const Stream& stream);
  /// `count` is what each rank sends; `receive` holds `size() * count`.
  Status all_gather(Address send, Address receive, std::size_t count, DType dtype,
                    const Stream& stream);
  /// `count` is what each rank receives; `send` holds `size() * count`.
  Status reduce_scatter(Address send, Address receive, std::size_t count, DType dtype,
                        Reduction reduction, const Stream& stream);
  Status broadcast(Address send, Address receive, std::size_t count, DType dtype, int root,
                   const Stream& stream);
  Status reduce(Address send, Address receive, std::size_t count, DType dtype, Reduction reduction,
                int root, const Stream& stream);
  Status send(Address data, std::size_t count, DType dtype, int peer, const Stream& stream);
  Status receive(Address data, std::size_t count, DType dtype, int peer, const Stream& stream);

  /// Ranks that give the same `color` form a new communicator, ordered by `key`; a negative colour
  /// takes no part and gets null. Every rank has to call it.
  Result<std::unique_ptr<Communicator>> split(int color, int key);
  /// Success while the communicator is healthy, else what broke it (`peer_failed` for a lost rank).
  Status async_error();
  /// Ends outstanding operations at once and frees; the way out when a peer is gone.
  Status abort();
  Status release();

 private:
  Communicator(int device, void* handle, int rank, int size)
      : device_(device), handle_(handle), rank_(rank), size_(size) {}

  int device_{};
  void* handle_{};
  int rank_{};
  int size_{};
};

}  // namespace monarch::native
