/// \file
/// Memory that every rank of a communicator can address: zero-copy for all operations.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "tutti/export.hpp"
#include "tutti/status.hpp"

namespace tutti {

class SymmetricMemoryImpl;

/// Symmetric memory: each rank has a part of size() bytes. Made by Communicator::allocate() and
/// Communicator::register_memory(), and owned by the caller.
///
/// Destroying it returns the memory to the communicator's pool, or removes the registration. That
/// is local, not collective, and allowed after the communicator has been destroyed.
class SymmetricMemory {
 public:
  SymmetricMemory() = default;
  /// For the library.
  explicit SymmetricMemory(std::shared_ptr<SymmetricMemoryImpl> impl) : impl_(std::move(impl)) {}

  /// This rank's part; 16-byte aligned if allocated. In one operation every rank uses the same
  /// offset into its own part.
  TUTTI_API void* data() const;
  /// Bytes of one rank's part.
  TUTTI_API std::size_t size() const;

  /// This rank's part as size() / sizeof(T) elements.
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data()), size() / sizeof(T)};
  }

  /// The part of `rank`, as an address of this rank; null if the memory is staged.
  TUTTI_API void* peer(int rank) const;

  /// False if peers cannot address the memory (register_memory() only). Operations then copy
  /// through the communicator's staging, and log that once.
  TUTTI_API bool zero_copy() const;

  explicit operator bool() const { return impl_ != nullptr; }
  /// For the library.
  SymmetricMemoryImpl* impl() const { return impl_.get(); }

 private:
  std::shared_ptr<SymmetricMemoryImpl> impl_;
};

}  // namespace tutti
