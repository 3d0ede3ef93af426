// The rows of two kernels: a row of all_reduce that adds the residual to what it reduces, and
// behind it a kernel that normalises what is then in own memory.
//
//   kernel 1  as the row of all_reduce says; whoever has a sum adds the residual, and then sends it
//
//   kernel 2  for each token: load residual_output, sum up the squares over the block; normalise,
//             store to output
//
// Cost: that row's, and 2 x bytes of own memory. Behind the links every multiprocessor can work on
// what is normalised, and tokens need not stay with the blocks that reduced them. In place is safe
// where it is in all_reduce: when the second kernel begins, nobody reads this rank's buffers.
#pragma once

#include "algorithms/all_reduce_residual_rms_norm/token.hpp"
#include "algorithms/all_reduce_residual_rms_norm/tokens_of.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

// residual_output = round(sum + residual), as an Epilogue.
struct PlusResidual {
  // The many blocks behind it would crowd on the few multiprocessors that are free first: measured
  // on 2 H200s, up to 1 us later at 64 to 256 tokens.
  static constexpr bool kTriggers = false;
  template <class T, class Team>
  static TUTTI_BODY auto load(const Team& team, const KernelArgs& work, TileAt tile) {
    return team.template load_from<T>(work.norm.residual, tile);
  }
  template <class T, class Team>
  static TUTTI_BODY auto apply(const typename Team::Words& sum,
                               const typename Team::Words& residual) {
    return plus_residual<T, Team>(sum, residual);
  }
  template <class T, class Team, int kElements>
  static TUTTI_BODY auto apply(const Tile<T, kElements>& sum,
                               const typename Team::Words& residual) {
    return Team::template tile_of<T>(plus_residual<T, Team>(Team::words_of(sum), residual));
  }
};

// The second kernel, for whole vectors, by what is written, or for anything.
struct AllReduceResidualRmsNormNormalise {
  using Kernel = LocalKernel;
  using Types = NormalisedSums;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, int kernel);

  enum Kernels : int { kWholeTiles, kWholeTilesToE4M3, kWholeTilesToE5M2, kAnyTiles };
  static constexpr int kKernels = 4;

  // Three blocks on a multiprocessor: its memory keeps busy while one of them sums up.
  static constexpr int blocks_per_sm(int kernel) { return kernel == kAnyTiles ? 2 : 3; }
  // Whether all of it is vectors of 16 bytes; of output with 8 bits, as many elements.
  static bool has_whole_tiles(const KernelArgs& work, std::size_t element_bytes) {
    const auto bits = [](const std::byte* buffer) {
      return reinterpret_cast<std::uintptr_t>(buffer);
    };
    const std::size_t narrower = is_fp8(work.norm.output_dtype) ? element_bytes : 1;
    const std::uintptr_t all = bits(work.output) | bits(work.norm.weight) |
                               bits(work.norm.output) * narrower | work.norm.hidden * element_bytes;
    return all % 16 == 0;
  }

  // A block for each token, of which a thread holds two tiles (measured on 2 H200s: with one or
  // four it takes up to 5 % longer).
  static Follower::Grid grid_for(const KernelArgs& work, std::size_t element_bytes) {
    Follower::Grid grid;
    grid.kernel = !has_whole_tiles(work, element_bytes)             ? kAnyTiles
                  : work.norm.output_dtype == DataType::kFloat8E4M3 ? kWholeTilesToE4M3
                  : work.norm.output_dtype == DataType::kFloat8E5M2 ? kWholeTilesToE5M2
                                                                    : kWholeTiles;
    const std::size_t tiles = ceil_div(work.norm.hidden * element_bytes, 16);
    grid.threads = static_cast<int>(std::clamp<std::size_t>(ceil_div(tiles, 2), 32, kMaxThreads));
    grid.blocks = std::max(static_cast<int>(work.norm.tokens), 1);
    return grid;
  }

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
  // As that kernel. `wide`: accesses of whole vectors.
  template <class Reduction, int kKernel, class Team, class Wide>
  static TUTTI_BODY Outcome run_as(Team& team, const KernelArgs& work, Wide wide);
};

inline constexpr Follower kNormalise{.grid = AllReduceResidualRmsNormNormalise::grid_for,
                                     .host = AllReduceResidualRmsNormNormalise::host,
                                     .cuda = AllReduceResidualRmsNormNormalise::cuda,
                                     .kernels = AllReduceResidualRmsNormNormalise::kKernels};

// `Output`: what elements are written as; AnyOutput: as the operation says.
template <class T, class Output, class Team, class Access>
TUTTI_BODY Outcome normalise_tokens(Team& team, const KernelArgs& work, Access access) {
  using Words = typename Team::Words;
  const Tokens<Team::template tile_elements<T>(), Access::kIsWhole> tokens(work);
  const auto weight = [&](Slice k) {
    return team.template load_from<T>(work.norm.weight, access, tokens.tile(k));
  };
  const auto square = [&](Slice k, const Words& words, float(&parts)[Team::kTileParts]) {
    sum_squares<T, Team>(words, tokens.tile(k).count, parts);
  };

  team.launch_wait();
  team.launch_trigger();
  return team.for_each_token(tokens.count, [&](Slice token) {
    const auto load = [&](Slice k) {
      return team.template load_from<T>(work.output, access, tokens.tile(token, k));
    };
    float sum;
    if (team.sum_of_loaded(tokens.tiles, load, weight, square, sum) != Outcome::kDone) {
      return Outcome::kFailed;
    }
    const float factor = inverse_rms(work.norm, sum);
    team.for_each_loaded(tokens.tiles, load, weight, [&](Slice k, const Words& x, const Words& w) {
      const Unscaled<Words> tile{tokens.tile(token, k), x, w, factor};
      store_result<T, Output>(team, work.norm, access, tile);
    });
    return Outcome::kDone;
  });
}

template <class Reduction, class Team>
TUTTI_BODY Outcome AllReduceResidualRmsNormNormalise::run(Team& team, const KernelArgs& work) {
  using T = typename Reduction::Element;
  return team.template with_token_access<T>(
      work, [&](auto access) { return normalise_tokens<T, AnyOutput>(team, work, access); });
}

template <class Reduction, int kKernel, class Team, class Wide>
TUTTI_BODY Outcome AllReduceResidualRmsNormNormalise::run_as(Team& team, const KernelArgs& work,
                                                             Wide wide) {
  using T = typename Reduction::Element;
  if constexpr (kKernel == kWholeTiles) {
    return normalise_tokens<T, T>(team, work, wide);
  } else if constexpr (kKernel == kWholeTilesToE4M3) {
    return normalise_tokens<T, Float8E4M3>(team, work, wide);
  } else if constexpr (kKernel == kWholeTilesToE5M2) {
    return normalise_tokens<T, Float8E5M2>(team, work, wide);
  } else {
    return run<Reduction>(team, work);
  }
}

}  // namespace tutti
