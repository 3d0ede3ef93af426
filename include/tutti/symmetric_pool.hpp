// Symmetric memory that is allocated once and given out again and again, without a message.
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

// A block of a pool. Whoever holds it has it alone; destroying it gives it back. It may outlive its
// pool and the communicator.
class SymmetricBlock {
 public:
  TUTTI_API SymmetricBlock();
  explicit SymmetricBlock(std::unique_ptr<SymmetricBlockImpl> impl);
  TUTTI_API SymmetricBlock(SymmetricBlock&&) noexcept;
  TUTTI_API SymmetricBlock& operator=(
      SymmetricBlock&&) noexcept;  // what was held before is given back
  TUTTI_API ~SymmetricBlock();

  // This rank's part: `bytes()` bytes as they were asked for, 256-byte aligned. Zero where nobody
  // had the block before, else whatever was left there.
  TUTTI_API void* data() const;
  TUTTI_API std::size_t bytes() const;

  // This rank's part as elements of type T: bytes() / sizeof(T) of them.
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data()), bytes() / sizeof(T)};
  }

  explicit operator bool() const { return impl_ != nullptr; }

  // Back to the pool, which lets whoever takes the block next wait for what `stream` has been given
  // so far. The host backend does not look at `stream`. An empty handle: nothing happens.
  // Destroying a block without this is right where its next taker's stream is ordered behind this
  // one's in another way: the same stream, an event, a synchronisation.
  // Errors: kInvalidArgument within a capture (the block stays taken), kCuda.
  TUTTI_API Status give_back(Stream stream);

 private:
  std::unique_ptr<SymmetricBlockImpl> impl_;
};

// Blocks come in sizes that are at most an eighth larger than what is asked for, from 2 KiB on.
// take() gives the free block of that size that was given back first; where none is free it
// allocates one. That depends on the calls alone: every rank takes and gives back in the same
// order, and then has the same block, at the same offset, without asking the others. A loop that
// takes and gives back the same sizes allocates in its first iteration at most. Ranks whose calls
// differ are found by the next operation on such a block (kMismatch) or, where one of them
// allocates alone, by its deadline.
//
// From one thread at a time. Destroying the pool frees what is in it, as trim() does.
class SymmetricPool {
 public:
  // The communicator outlives the last take().
  TUTTI_API explicit SymmetricPool(Communicator& communicator);
  TUTTI_API SymmetricPool(SymmetricPool&&) noexcept;
  TUTTI_API SymmetricPool& operator=(SymmetricPool&&) noexcept;
  TUTTI_API ~SymmetricPool();

  // `bytes` > 0, equal on every rank. The block may be used in `stream`'s order (CUDA), and in what
  // is ordered behind it. Where it allocates: collective, waits for the other ranks, at most the
  // communicator's timeout.
  // Errors: kInvalidArgument (0 bytes; within a capture of `stream`: graphs keep their memory, so
  // they need an allocation, or a block that was taken before), and those of allocate().
  TUTTI_API Result<SymmetricBlock> take(std::size_t bytes, Stream stream = nullptr);

  // Gives what is not taken back to the communicator. Local; every rank does it at the same place
  // in its calls, when its work on these blocks has ended.
  TUTTI_API void trim();

  struct Use {
    std::size_t blocks = 0;  // taken and free
    std::size_t taken_bytes = 0, free_bytes = 0;
  };
  TUTTI_API Use use() const;

 private:
  std::shared_ptr<SymmetricPoolImpl> impl_;
};

}  // namespace tutti
