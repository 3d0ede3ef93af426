// reduce/ring: a sum goes along the ring from the rank next to the root to the root, chunk by chunk
// (algorithms/chain.hpp).
//
// Nobody but the root has an output, so sums on their way go through slots, whatever the buffers
// are: no peer touches any. In place is safe: the root adds its input last, an element by the
// thread that then overwrites it.
//
// Cost: a barrier, then n - 1 hops of a chunk of every block; 1 x bytes over each link.
#pragma once

#include "algorithms/chain.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct ReduceRing {
  using Kernel = RingKernel;
  using Types = ColumnReductions;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "reduce/ring",
      .collective = Collective::kReduce,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kNone,
      .cost = {.steps = -1, .steps_per_rank = 4.1, .wire = root_wire, .local = times<3>},
      .text = "a partial sum goes along the ring to the root, chunk by chunk",
      .peers_read_input = false,
      .ring_directions = 1,
      .only_where_measured = true,
      .min_threads = 64,
      .takes = rings_take,
      .geometry = chain_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises{
      .loads = 2, .stores = 2, .barriers = 1, .block_fences = true};
  static constexpr Traffic kTraffic{.hops = "1 + n", .wire = "B, to one neighbour"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team>
TUTTI_BODY Outcome ReduceRing::run(Team& team, const KernelArgs& work) {
  return go_along<ChunkWork{.adds = true, .spreads = false}, Reduction>(team, work);
}

}  // namespace tutti
