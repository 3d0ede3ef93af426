// all_gather/ring and all_gather/ring_bidirectional: every piece goes around, from output to output
// (algorithms/ring.hpp), or through slots, and then one way.
//
// Nobody touches another rank's input. In place is safe: neighbours store the other pieces alone.
//
// Cost: n - 1 hops, or ceil((n-1)/2), behind a barrier; (n-1)/n x bytes over one link each way.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/ring.hpp"

namespace tutti {

struct AllGatherRing {
  using Kernel = RingKernel;
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "all_gather/ring",
      .collective = Collective::kAllGather,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = -1, .steps_per_rank = 4.1, .wire = pieces_wire, .local = times<2>},
      .text = "blocks go around the ring, chunk by chunk",
      .peers_read_input = false,
      .peers_write_output = true,
      .ring_directions = 1,
      .only_where_measured = true,
      .min_threads = 64,
      .takes = moves,
      .geometry = ring_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises{
      .loads = 1, .stores = 3, .barriers = 1, .block_fences = true};
  static constexpr Traffic kTraffic{.hops = "1 + n", .wire = "(n-1)/n B, to one neighbour"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class, class Team>
TUTTI_BODY Outcome AllGatherRing::run(Team& team, const KernelArgs& work) {
  using Bytes = Reduction<std::uint8_t, Sum>;  // of which none is added
  return go_around<ChunkWork{.adds = false, .spreads = true}, Bytes>(team, work);
}

}  // namespace tutti
