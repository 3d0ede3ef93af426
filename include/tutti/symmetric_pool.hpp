/// \file
/// A pool of symmetric memory whose blocks are reused without inter-rank communication.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "tutti/communicator.hpp"
#include "tutti/export.hpp"
#include "tutti/status.hpp"
#include "tutti/types.hpp"

namespace tutti {

class SymmetricBlockImpl;
class SymmetricPoolImpl;

/// A block of a pool, owned by its holder. Destroying it returns it to the pool. It may outlive the
/// pool and the communicator.
class SymmetricBlock {
 public:
  TUTTI_API SymmetricBlock();
  /// For the library.
  explicit SymmetricBlock(std::unique_ptr<SymmetricBlockImpl> impl);
  TUTTI_API SymmetricBlock(SymmetricBlock&&) noexcept;
  /// Returns the block that was held before.
  TUTTI_API SymmetricBlock& operator=(SymmetricBlock&&) noexcept;
  TUTTI_API ~SymmetricBlock();

  /// This rank's part, 256-byte aligned. Its content is zero in a new block, and whatever its last
  /// holder left in a reused one.
  TUTTI_API void* data() const;
  /// Bytes of one rank's part, as requested.
  TUTTI_API std::size_t bytes() const;

  /// This rank's part as bytes() / sizeof(T) elements.
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data()), bytes() / sizeof(T)};
  }

  explicit operator bool() const { return impl_ != nullptr; }

  /// Returns the block to the pool. The next holder's stream waits for all work that is on
  /// `stream` now. The host backend ignores `stream`. An empty handle: nothing happens.
  ///
  /// Destroying a block without this call is correct if the next holder's stream is ordered after
  /// this one's in another way: same stream, event, synchronization.
  ///
  /// Errors: kInvalidArgument inside a capture (the block stays with its holder), kCuda.
  TUTTI_API Status give_back(Stream stream);

 private:
  std::unique_ptr<SymmetricBlockImpl> impl_;
};

/// A pool of symmetric memory.
///
/// Block sizes are at most an eighth larger than requested, and at least 2 KiB. take() returns the
/// free block of that size that was returned first, or allocates one. So which block a call returns
/// depends on the calls alone: if every rank takes and returns blocks in the same order, every rank
/// gets the same block at the same offset, without asking the others. A loop that takes and returns
/// the same sizes allocates in its first iteration only.
///
/// If ranks make different calls, the next operation on such a block fails with kMismatch; if only
/// one rank allocates, that call fails with kTimeout.
///
/// Not thread-safe. Destroying the pool frees its blocks as trim() does.
class SymmetricPool {
 public:
  /// The communicator must exist as long as take() is called.
  TUTTI_API explicit SymmetricPool(Communicator& communicator);
  TUTTI_API SymmetricPool(SymmetricPool&&) noexcept;
  TUTTI_API SymmetricPool& operator=(SymmetricPool&&) noexcept;
  TUTTI_API ~SymmetricPool();

  /// Takes a block of `bytes` bytes per rank; above 0, equal on every rank. On CUDA use it on
  /// `stream` after this call, or in work that is ordered after this point of `stream`.
  ///
  /// If the call allocates it is collective: it waits for the other ranks, at most for the
  /// communicator's timeout.
  ///
  /// Errors: kInvalidArgument (0 bytes, or inside a capture of `stream`: a graph keeps its memory,
  /// so take the block before the capture), and those of Communicator::allocate().
  TUTTI_API Result<SymmetricBlock> take(std::size_t bytes, Stream stream = nullptr);

  /// Returns free blocks to the communicator. Local. Every rank calls it at the same place among
  /// its calls, when its work on these blocks has ended.
  TUTTI_API void trim();

  /// What the pool holds.
  struct Use {
    std::size_t blocks = 0;       ///< number of blocks, taken and free
    std::size_t taken_bytes = 0;  ///< bytes of taken blocks
    std::size_t free_bytes = 0;   ///< bytes of free blocks
  };
  TUTTI_API Use use() const;

 private:
  std::shared_ptr<SymmetricPoolImpl> impl_;
};

}  // namespace tutti
