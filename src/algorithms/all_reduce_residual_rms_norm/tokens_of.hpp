// What all_reduce_residual_rms_norm takes, and how its tokens are dealt out.
#pragma once

#include <algorithm>

#include "algorithms/catalogue.hpp"
#include "algorithms/instantiate.hpp"
#include "base/units.hpp"
#include "device/kernel_args.hpp"

namespace tutti {

// Of what can be normalised: sums of fp32, fp16 and bf16.
inline bool is_normalised(DataType dtype, OpKind op) {
  return op == OpKind::kSum && (dtype == DataType::kFloat32 || dtype == DataType::kFloat16 ||
                                dtype == DataType::kBfloat16);
}

template <class Team = void, class Select>
auto with_normalised(DataType dtype, Select&& select) {
  if constexpr (!kFloatSumsOnly<Team>) {
    if (dtype == DataType::kFloat16) return select(Tag<Reduction<Half, Sum>>{});
    if (dtype == DataType::kBfloat16) return select(Tag<Reduction<Bfloat16, Sum>>{});
  }
  return select(Tag<Reduction<float, Sum>>{});
}

struct NormalisedSums {
  template <class Team = void, class Select>
  static auto select(DataType dtype, OpKind, Select&& f) {
    return with_normalised<Team>(dtype, f);
  }
};

// Of the packets of a token: a whole number of the host's tiles, the largest ones.
inline constexpr std::size_t kTokenUnit = 1 * KiB;

inline std::size_t tokens_of(const Extent& extent) {
  return extent.token_bytes == 0 ? 0 : extent.bytes / extent.token_bytes;
}

// A thread for each of a token's tiles of 16 bytes.
inline int threads_of(const Extent& extent, std::size_t cluster) {
  const std::size_t tiles = ceil_div(extent.token_bytes, 16 * cluster);
  return static_cast<int>(std::clamp<std::size_t>(tiles, 32, kMaxThreads));
}

// A cluster for each of so many tokens as long as there are blocks. Of as many as leave each block
// 128 threads: so all_reduce is best at the size of one token.
inline Geometry clusters_for(const Extent& extent, std::size_t tokens) {
  tokens = std::clamp<std::size_t>(tokens, 1, kMaxBlocks);
  std::size_t cluster = kMaxClusterBlocks;
  while (cluster > 1 &&
         (tokens * cluster > kMaxBlocks || extent.token_bytes < cluster * 128 * 16)) {
    cluster /= 2;
  }
  return {static_cast<int>(tokens * cluster), threads_of(extent, cluster)};
}

}  // namespace tutti
