// The rows of reduce_scatter_v. Entries are defined beside the bodies they instantiate.
#pragma once

#include "algorithms/bodies.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_reduce_scatter_v_pull(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_reduce_scatter_v_one_shot_push(DataType dtype, OpKind op);

// Null in builds without CUDA. __global__ void(KernelArgs, PieceCounts).
CudaKernel cuda_reduce_scatter_v_pull(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_reduce_scatter_v_one_shot_push(DataType dtype, OpKind op, int ranks);

std::span<const Algorithm> reduce_scatter_v_rows();

}  // namespace tutti
