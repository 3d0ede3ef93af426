// Memory of one rank alone that a group can map later: a heap finds it by its address when it is
// registered.
#pragma once

#include <cstddef>
#include <memory>

#include "base/fd.hpp"
#include "memory/mapping.hpp"
#include "tutti/status.hpp"

namespace tutti {

class CudaDriver;
class SharedMemoryDriver;

// Registrations own it as its holder does: it is unmapped after the last of them.
class LocalAllocation {
 public:
  using Owned = std::shared_ptr<LocalAllocation>;

  // Zeroed. Keeps a descriptor open.
  static Result<Owned> on_host(SharedMemoryDriver& shared_memory, std::size_t bytes);
  // Not zeroed. `descriptors`: whether the ranks of the group can send them to each other;
  // otherwise it has a fabric handle, where the GPU has those.
  static Result<Owned> on_gpu(CudaDriver& cuda, int device, std::size_t bytes, bool descriptors);

  // The one of this driver that holds the address; null if none does.
  static Owned find(const void* driver, const std::byte* address);

  LocalAllocation(const void* driver, std::shared_ptr<Mapping> mapping, std::size_t bytes,
                  Fd memory);
  ~LocalAllocation();
  LocalAllocation(const LocalAllocation&) = delete;
  LocalAllocation& operator=(const LocalAllocation&) = delete;

  const std::shared_ptr<Mapping>& mapping() const { return mapping_; }
  std::byte* address() const { return mapping_->address(); }
  std::size_t bytes() const { return bytes_; }  // rounded
  Result<Fd> duplicate_descriptor() const;      // of the host's

 private:
  friend class LocalAllocations;

  const void* const driver_;
  const std::shared_ptr<Mapping> mapping_;
  const std::size_t bytes_;
  const Fd memory_;
};

}  // namespace tutti
