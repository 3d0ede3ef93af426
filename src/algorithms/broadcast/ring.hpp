// broadcast/ring: the message goes along the ring from the root to the rank previous to it, chunk
// by chunk, from output to output, or through slots (algorithms/chain.hpp).
//
// No peer touches the root's input, so any will do, and in place is safe.
//
// Cost: a barrier, then n - 1 hops of a chunk of every block; 1 x bytes over each link.
#pragma once

#include "algorithms/chain.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"

namespace tutti {

struct BroadcastRing {
  using Kernel = RingKernel;
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "broadcast/ring",
      .collective = Collective::kBroadcast,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = -1, .steps_per_rank = 4.1, .wire = root_wire, .local = times<2>},
      .text = "the message goes along the ring from the root, chunk by chunk",
      .peers_read_input = false,
      .peers_write_output = true,
      .ring_directions = 1,
      .only_where_measured = true,
      .min_threads = 64,
      .takes = moves,
      .geometry = chain_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises{
      .loads = 1, .stores = 2, .barriers = 1, .block_fences = true};
  static constexpr Traffic kTraffic{.hops = "1 + n", .wire = "B, to one neighbour"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class, class Team>
TUTTI_BODY Outcome BroadcastRing::run(Team& team, const KernelArgs& work) {
  using Bytes = Reduction<std::uint8_t, Sum>;  // of which none is added
  return go_along<ChunkWork{.adds = false, .spreads = true}, Bytes>(team, work);
}

}  // namespace tutti
