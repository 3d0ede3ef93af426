// Shared memory, with faults on request.
#pragma once

#include <cstddef>

#include "drivers/shared_memory.hpp"

namespace tutti {

// Counts what is open and fails the k-th call on request. `inner` must outlive it.
class FakeSharedMemory : public SharedMemoryDriver {
 public:
  explicit FakeSharedMemory(SharedMemoryDriver& inner) : inner_(inner) {}
  Result<Fd> create(std::size_t bytes) override;
  Result<std::byte*> map(int fd, std::size_t bytes) override;
  void unmap(std::byte* address, std::size_t bytes) override;

  int fail_create_at = -1;  // counts down; the call that reaches 0 fails with kResourceExhausted
  int fail_map_at = -1;
  int mapped = 0;  // mappings open now

 private:
  SharedMemoryDriver& inner_;
};

}  // namespace tutti
