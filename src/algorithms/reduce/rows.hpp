// The rows of reduce. Entries are defined beside the bodies they instantiate: one for
// each element type and reduction.
#pragma once

#include "algorithms/bodies.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_reduce_one_shot_push(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_reduce_two_shot_staged(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_reduce_multicast(DataType dtype, OpKind op);

// Null in builds without CUDA.
CudaKernel cuda_reduce_one_shot_push(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_reduce_two_shot_staged(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_reduce_multicast(DataType dtype, OpKind op, int ranks);

std::span<const Algorithm> reduce_rows();

}  // namespace tutti
