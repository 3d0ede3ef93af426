// The rows of broadcast. Entries are defined beside the bodies they instantiate: one each, for
// bytes.
#pragma once

#include "algorithms/bodies.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_broadcast_one_shot_push(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_broadcast_two_shot(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_broadcast_copy_engine(DataType dtype, OpKind op);

// Null in builds without CUDA.
CudaKernel cuda_broadcast_one_shot_push(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_broadcast_two_shot(DataType dtype, OpKind op, int ranks);

// Programs of copy engines.
void broadcast_copy_engine(Stages& stages, const KernelArgs& work, std::size_t element_bytes);

std::span<const Algorithm> broadcast_rows();

}  // namespace tutti
