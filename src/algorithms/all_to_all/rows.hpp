// The rows of all_to_all. Entries are defined beside the bodies they instantiate: one each, for
// bytes.
#pragma once

#include "algorithms/bodies.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_all_to_all_push(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_to_all_push_per_peer(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_to_all_one_shot_push(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_to_all_copy_engine(DataType dtype, OpKind op);

// Null in builds without CUDA.
CudaKernel cuda_all_to_all_push(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_to_all_push_per_peer(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_to_all_one_shot_push(DataType dtype, OpKind op, int ranks);

// Programs of copy engines.
void all_to_all_copy_engine(Stages& stages, const KernelArgs& work, std::size_t element_bytes);

std::span<const Algorithm> all_to_all_rows();

}  // namespace tutti
