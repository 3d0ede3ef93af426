// CUDA's multicast objects: memory of several GPUs behind one address. They are exported, imported
// and mapped as allocations are.
#pragma once

#include <cstddef>

#include "drivers/cuda.hpp"

namespace tutti {

class MulticastDriver {
 public:
  virtual ~MulticastDriver() = default;

  // For so many GPUs. Sizes are multiples of it.
  virtual Result<std::size_t> granularity(int gpus, std::size_t bytes) = 0;
  virtual Result<CudaAllocation> create(int gpus, std::size_t bytes) = 0;
  virtual Status add_device(CudaAllocation object, int device) = 0;
  // The first `bytes` of `memory`, which is on `device`. All devices must have been added.
  virtual Status bind(CudaAllocation object, CudaAllocation memory, std::size_t bytes) = 0;
  virtual Status unbind(CudaAllocation object, int device, std::size_t bytes) = 0;
};

// Null in builds without TUTTI_MULTICAST, and where the driver library lacks it.
MulticastDriver* real_multicast();

}  // namespace tutti
