// The rows of all_reduce. Entries are defined beside the bodies they instantiate.
#pragma once

#include "algorithms/bodies.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_all_reduce_one_shot(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_reduce_two_shot(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_reduce_one_shot_push(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_reduce_two_shot_push(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_reduce_two_shot_staged(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_reduce_two_shot_tma(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_reduce_ring(DataType dtype, OpKind op);  // and ring_bidirectional
template <class Team>
BodyOf<Team> host_all_reduce_one_shot_copy_engine(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_reduce_two_shot_copy_engine(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_reduce_multicast_one_shot(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_reduce_multicast_two_shot(DataType dtype, OpKind op);

// Null in builds without CUDA.
CudaKernel cuda_all_reduce_one_shot(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_reduce_two_shot(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_reduce_one_shot_push(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_reduce_two_shot_push(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_reduce_two_shot_staged(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_reduce_two_shot_tma(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_reduce_ring(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_reduce_copy_engine(DataType dtype, OpKind op, int ranks);  // between copies
CudaKernel cuda_all_reduce_multicast_one_shot(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_reduce_multicast_two_shot(DataType dtype, OpKind op, int ranks);

// Programs of copy engines.
void all_reduce_one_shot_copy_engine(Stages& stages, const KernelArgs& work,
                                     std::size_t element_bytes);
void all_reduce_two_shot_copy_engine(Stages& stages, const KernelArgs& work,
                                     std::size_t element_bytes);

std::span<const Algorithm> all_reduce_rows();

}  // namespace tutti
