// Where the matrices of a call are.
#pragma once

#include "drivers/cuda.hpp"
#include "matmul/problem.hpp"

namespace tutti {

// kHost or kCuda. `wanted`: kCuda, or kAuto for where A is (where K = 0: C of the first product).
// kInvalidArgument where a matrix cannot be read or written from there. At least one product.
Result<Backend> backend_of(const CheckedMatmul& call, Backend wanted, CudaDriver& cuda);

}  // namespace tutti
