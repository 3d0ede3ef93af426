// The rows of reduce_scatter. Entries are defined beside the bodies they instantiate.
#pragma once

#include "algorithms/bodies.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_reduce_scatter_pull(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_reduce_scatter_pull_rows(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_reduce_scatter_push(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_reduce_scatter_push_per_peer(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_reduce_scatter_pull_tma(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_reduce_scatter_ring(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_reduce_scatter_one_shot_push(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_reduce_scatter_multicast(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_reduce_scatter_copy_engine(DataType dtype, OpKind op);

// Null in builds without CUDA. Between copies run all_reduce's kernels.
CudaKernel cuda_reduce_scatter_pull(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_reduce_scatter_pull_rows(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_reduce_scatter_push(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_reduce_scatter_push_per_peer(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_reduce_scatter_pull_tma(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_reduce_scatter_ring(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_reduce_scatter_one_shot_push(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_reduce_scatter_multicast(DataType dtype, OpKind op, int ranks);

// Programs of copy engines.
void reduce_scatter_copy_engine(Stages& stages, const KernelArgs& work, std::size_t element_bytes);

std::span<const Algorithm> reduce_scatter_rows();

}  // namespace tutti
