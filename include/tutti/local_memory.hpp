/// \file
/// Memory of one rank that can become symmetric later.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace tutti {

/// Memory of one rank alone, made by Communicator::allocate_local(). It is of the kind that peers
/// can address: Communicator::register_memory() of it, or of any part of it, is zero-copy in the
/// communicator that made it, in those that come of its split(), and in all others whose ranks can
/// send each other descriptors.
///
/// Destroying it frees the memory, local to this rank, once your work on it has ended.
/// Registrations hold the memory: while any is left, the memory stays as it is, at data(), on this
/// rank and its peers, and is freed with the last one. It may outlive its communicator.
class LocalMemory {
 public:
  LocalMemory() = default;
  /// For the library. `memory` points to the first byte.
  LocalMemory(std::shared_ptr<void> memory, std::size_t bytes)
      : memory_(std::move(memory)), bytes_(bytes) {}
  LocalMemory(LocalMemory&& other) noexcept = default;
  LocalMemory& operator=(LocalMemory&& other) noexcept = default;
  LocalMemory(const LocalMemory&) = delete;
  LocalMemory& operator=(const LocalMemory&) = delete;

  /// 4096-byte aligned. Null if there is none.
  void* data() const { return memory_.get(); }
  /// Bytes, as asked for.
  std::size_t size() const { return memory_ ? bytes_ : 0; }

  /// The memory as size() / sizeof(T) elements.
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data()), size() / sizeof(T)};
  }

  explicit operator bool() const { return memory_ != nullptr; }

 private:
  std::shared_ptr<void> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace tutti
