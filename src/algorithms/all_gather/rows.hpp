// The rows of all_gather. Entries are defined beside the bodies they instantiate: one each, for
// bytes.
#pragma once

#include "algorithms/bodies.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_all_gather_push(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_gather_push_per_peer(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_gather_pull_tma(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_gather_ring(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_gather_one_shot_push(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_gather_multicast(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_gather_copy_engine(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_gather_copy_engine_multicast(DataType dtype, OpKind op);

// Null in builds without CUDA.
CudaKernel cuda_all_gather_push(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_gather_push_per_peer(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_gather_pull_tma(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_gather_ring(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_gather_one_shot_push(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_gather_multicast(DataType dtype, OpKind op, int ranks);

// Programs of copy engines.
void all_gather_copy_engine_multicast(Stages& stages, const KernelArgs& work,
                                      std::size_t element_bytes);
void all_gather_copy_engine(Stages& stages, const KernelArgs& work, std::size_t element_bytes);

std::span<const Algorithm> all_gather_rows();

}  // namespace tutti
