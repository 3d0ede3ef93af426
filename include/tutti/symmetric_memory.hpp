// Memory that every rank of a communicator can address: zero-copy for every collective.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "tutti/export.hpp"
#include "tutti/status.hpp"

namespace tutti {

class SymmetricMemoryImpl;

// Owned by the caller, made by Communicator::allocate or Communicator::register_memory. Destroying
// it gives the memory back to the communicator's pool (allocate) or forgets the registration; that
// is local, calls nothing collective, and is allowed after the communicator is gone.
class SymmetricMemory {
 public:
  SymmetricMemory() = default;
  explicit SymmetricMemory(std::shared_ptr<SymmetricMemoryImpl> impl) : impl_(std::move(impl)) {}

  // This rank's part: `size()` bytes, 16-byte aligned if allocated. Every rank uses the same offset
  // into its own part in any one operation.
  TUTTI_API void* data() const;
  TUTTI_API std::size_t size() const;

  // This rank's part as elements of type T: size() / sizeof(T) of them.
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data()), size() / sizeof(T)};
  }

  // The same bytes of `rank`, as this rank addresses them; null where the memory is staged.
  TUTTI_API void* peer(int rank) const;

  // False where peers cannot address the memory (register_memory only): operations then copy
  // through the communicator's staging, and say so once.
  TUTTI_API bool zero_copy() const;

  explicit operator bool() const { return impl_ != nullptr; }
  SymmetricMemoryImpl* impl() const { return impl_.get(); }

 private:
  std::shared_ptr<SymmetricMemoryImpl> impl_;
};

}  // namespace tutti
