// What neither TMA nor cuBLASLt multiplies, and K = 0: a simple kernel for any GPU.
#pragma once

#include "drivers/cuda.hpp"
#include "matmul/problem.hpp"

namespace tutti {

// Enqueues `call` in `stream` on the current device. At least one product.
Status run_plain_matmul(CudaDriver& cuda, const CheckedMatmul& call, Stream stream);

}  // namespace tutti
