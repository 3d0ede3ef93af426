// Copies by a kernel of few blocks, instead of a copy engine: for copies beside a matmul.
#pragma once

#include "device/one_sided.hpp"
#include "drivers/cuda.hpp"

namespace tutti {

// __global__ void(CopyWork); null in builds without CUDA.
const void* copy_kernel();

// Loads the kernel on the current device. Launched unloaded, it would be loaded then, which may
// wait for running kernels.
Status load_copy_kernel(CudaDriver& cuda);

// Returns once enqueued, on the current device. What follows in the stream sees the copy.
Status copy_by_kernel(CudaDriver& cuda, const CopyWork& work, Stream stream);

}  // namespace tutti
