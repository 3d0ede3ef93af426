// The rows of barrier.
#pragma once

#include "algorithms/bodies.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_barrier_flags(DataType dtype, OpKind op);

// Null in builds without CUDA.
CudaKernel cuda_barrier_multicast(DataType dtype, OpKind op, int ranks);

std::span<const Algorithm> barrier_rows();

}  // namespace tutti
