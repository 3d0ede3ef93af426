// reduce_scatter/ring: sums of pieces go around, and end where they are whole
// (algorithms/ring.hpp).
//
// Outputs hold one piece, so sums on their way go through slots, whatever the buffers are: no peer
// touches any. In place is safe: my piece of the input is what I add last, an element by the thread
// that then overwrites it.
//
// Cost: n - 1 hops behind a barrier; (n-1)/n x bytes over one link each way.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/ring.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct ReduceScatterRing {
  using Kernel = RingKernel;
  using Types = ColumnReductions;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "reduce_scatter/ring",
      .collective = Collective::kReduceScatter,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kNone,
      .cost = {.steps = -1, .steps_per_rank = 4.1, .wire = pieces_wire, .local = times<3>},
      .text = "partial sums go around the ring, chunk by chunk",
      .peers_read_input = false,
      .ring_directions = 1,
      .only_where_measured = true,
      .min_threads = 64,
      .takes = rings_take,
      .geometry = ring_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises{
      .loads = 2, .stores = 2, .barriers = 1, .block_fences = true};
  static constexpr Traffic kTraffic{.hops = "1 + n", .wire = "(n-1)/n B, to one neighbour"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team>
TUTTI_BODY Outcome ReduceScatterRing::run(Team& team, const KernelArgs& work) {
  return go_around<ChunkWork{.adds = true, .spreads = false}, Reduction>(team, work);
}

}  // namespace tutti
