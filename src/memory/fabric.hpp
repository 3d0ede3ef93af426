// GPU memory for processes that cannot be sent a descriptor: on several hosts of one NVLink fabric,
// or in containers apart.
#pragma once

#include <cstddef>

#include "drivers/cuda.hpp"

namespace tutti {

// kUnsupported where the GPU has no fabric handles, or the machine does not permit them. That is
// known only by trying, and CUDA reports a refusal as an error to whatever tool looks on: it is
// remembered per process and GPU, and not tried again.
Result<CudaAllocation> create_fabric_allocation(CudaDriver& cuda, int device, std::size_t bytes);

}  // namespace tutti
