// What one rank of a communicator keeps for itself on a GPU: memory of the device, and host memory
// that is mapped there.
//
// cudaFree and cudaFreeHost wait for every kernel of the context. A kernel of another rank, on a
// GPU that both share, may wait for the very rank that frees. So what one communicator gives back
// is kept for the next one, and is freed with the last one of the process. The same holds for host
// memory that is registered with CUDA (Companion).
#pragma once

#include <cstddef>
#include <memory>

#include "drivers/cuda.hpp"

namespace tutti {

class RankMemory {
 public:
  struct Sizes {
    std::size_t device_bytes = 0, host_bytes = 0;  // of the host some, always
    friend bool operator==(const Sizes&, const Sizes&) = default;
  };

  // Not zeroed. `device` is the current one.
  static Result<RankMemory> create(CudaDriver& cuda, int device, const Sizes& sizes);

  RankMemory();
  RankMemory(RankMemory&&) noexcept;
  RankMemory& operator=(RankMemory&&) noexcept;
  ~RankMemory();

  CudaAddress device_memory() const;
  std::byte* host_memory() const;

  // A kernel may still use it: nobody else ever gets it.
  void leave_behind();

  // Something else that may not be freed while kernels run.
  struct Companion {
    virtual ~Companion() = default;
    std::unique_ptr<Companion> next;  // of those that are kept
  };
  // Until the last block of this driver is given back; there is one now.
  static void keep(CudaDriver& cuda, std::unique_ptr<Companion> companion);

 private:
  struct Block;
  class Kept;
  explicit RankMemory(std::unique_ptr<Block> block);

  std::unique_ptr<Block> block_;
};

}  // namespace tutti
