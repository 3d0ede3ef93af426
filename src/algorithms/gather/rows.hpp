// The rows of gather. Entries are defined beside the bodies they instantiate: one each, for
// bytes.
#pragma once

#include "algorithms/bodies.hpp"

namespace tutti {

HostBody host_gather_pull(DataType dtype, OpKind op);
HostBody host_gather_one_shot_push(DataType dtype, OpKind op);
HostBody host_gather_copy_engine(DataType dtype, OpKind op);

// Null in builds without CUDA.
CudaKernel cuda_gather_pull(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_gather_one_shot_push(DataType dtype, OpKind op, int ranks);

std::span<const Algorithm> gather_rows();

}  // namespace tutti
