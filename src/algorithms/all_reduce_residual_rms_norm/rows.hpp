// The rows of all_reduce_residual_rms_norm. Entries are defined beside the bodies they instantiate.
#pragma once

#include "algorithms/bodies.hpp"
#include "algorithms/instantiate.hpp"

namespace tutti {

template <class Team>
BodyOf<Team> host_all_reduce_residual_rms_norm_one_shot_push(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_reduce_residual_rms_norm_one_shot_push_split(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_reduce_residual_rms_norm_two_shot(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_all_reduce_residual_rms_norm_two_shot_push(DataType dtype, OpKind op);
template <class Team>
BodyOf<Team> host_normalise_tokens(DataType dtype, OpKind op);

// Null in builds without CUDA.
CudaKernel cuda_all_reduce_residual_rms_norm_one_shot_push(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_reduce_residual_rms_norm_one_shot_push_split(DataType dtype, OpKind op,
                                                                 int ranks);
CudaKernel cuda_all_reduce_residual_rms_norm_two_shot(DataType dtype, OpKind op, int ranks);
CudaKernel cuda_all_reduce_residual_rms_norm_two_shot_push(DataType dtype, OpKind op, int ranks);

// The second kernels of rows that are split: for whole vectors, by what is written, or for
// anything.
enum Normaliser : int { kWholeTiles, kWholeTilesToE4M3, kWholeTilesToE5M2, kAnyTiles };
inline constexpr int kNormalisers = 4;
CudaKernel cuda_normalise_tokens(DataType dtype, int normaliser);

std::span<const Algorithm> all_reduce_residual_rms_norm_rows();

// Of what can be normalised: sums of fp32, fp16 and bf16.
bool is_normalised(DataType dtype, OpKind op);
template <class Team = void, class Select>
auto with_normalised(DataType dtype, Select&& select) {
  if constexpr (!kFloatSumsOnly<Team>) {
    if (dtype == DataType::kFloat16) return select(Tag<Reduction<Half, Sum>>{});
    if (dtype == DataType::kBfloat16) return select(Tag<Reduction<Bfloat16, Sum>>{});
  }
  return select(Tag<Reduction<float, Sum>>{});
}

}  // namespace tutti
