// The kernel of rows whose bytes copy engines move, and nothing else: between copies ranks meet.
#pragma once

#include "algorithms/bodies.hpp"

namespace tutti {

// Null in builds without CUDA.
CudaKernel cuda_meeting(DataType dtype, OpKind op, int ranks);

}  // namespace tutti
