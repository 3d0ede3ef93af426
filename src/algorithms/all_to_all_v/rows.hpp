// The rows of all_to_all_v. Entries are defined beside the bodies they instantiate: one each, for
// bytes.
#pragma once

#include "algorithms/bodies.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_all_to_all_v_push(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_to_all_v_one_shot_push(DataType dtype, OpKind op);

// Null in builds without CUDA. __global__ void(KernelArgs, PieceCounts).
CudaKernel cuda_all_to_all_v_push(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_to_all_v_one_shot_push(DataType dtype, OpKind op, int ranks);

std::span<const Algorithm> all_to_all_v_rows();

}  // namespace tutti
