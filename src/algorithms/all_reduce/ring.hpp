// all_reduce/ring and all_reduce/ring_bidirectional: sums go around, and then come around again
// (algorithms/ring.hpp). Rank r makes share r + 1 whole.
//
// In place chunks go through slots, which is safe there: a chunk of the output is stored when it is
// whole, for which its input was read.
//
// Cost: 2(n-1) hops, or n - 1 + ceil((n-1)/2), behind a barrier; 2(n-1)/n x bytes over one link
// each way.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/ring.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct AllReduceRing {
  using Kernel = RingKernel;
  using Types = ColumnReductions;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce/ring",
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kSameOnAllRanks,
      // Each of 2 (n - 1) passes takes as long as four hops: stores, a fence behind them, a flag.
      .cost = {.steps = -6, .steps_per_rank = 8.2, .wire = two_shot_wire, .local = times<5>},
      .text = "ring reduce-scatter, then ring all-gather, chunk by chunk",
      .peers_read_input = false,
      .peers_write_output = true,
      .in_place_needs_staging = true,
      .ring_directions = 1,
      .min_threads = 64,
      .takes = rings_take,
      .geometry = ring_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises{
      .loads = 2, .stores = 3, .barriers = 1, .block_fences = true};
  static constexpr Traffic kTraffic{.hops = "2 + 2 n", .wire = "2 (n-1)/n B, to one neighbour"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team>
TUTTI_BODY Outcome AllReduceRing::run(Team& team, const KernelArgs& work) {
  return go_around<ChunkWork{.adds = true, .spreads = true}, Reduction>(team, work);
}

}  // namespace tutti
