// The rows of scatter. Entries are defined beside the bodies they instantiate: one each, for
// bytes.
#pragma once

#include "algorithms/bodies.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_scatter_push(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_scatter_one_shot_push(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_scatter_copy_engine(DataType dtype, OpKind op);

// Null in builds without CUDA.
CudaKernel cuda_scatter_push(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_scatter_one_shot_push(DataType dtype, OpKind op, int ranks);

// Programs of copy engines.
void scatter_copy_engine(Stages& stages, const KernelArgs& work, std::size_t element_bytes);

std::span<const Algorithm> scatter_rows();

}  // namespace tutti
