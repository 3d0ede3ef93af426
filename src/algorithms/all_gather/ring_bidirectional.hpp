// all_gather/ring_bidirectional: as ring, but pieces go around both ways.
#pragma once

#include "algorithms/all_gather/ring.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"

namespace tutti {

struct AllGatherRingBidirectional {
  // What coming around both ways costs all_reduce's ring, which is in its second half.
  static double wire(int ranks) { return (ranks > 2 ? 1.1 : 1) * pieces_wire(ranks); }

  static constexpr Algorithm kAlgorithm{
      .id = "all_gather/ring_bidirectional",
      .collective = Collective::kAllGather,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 0.5, .steps_per_rank = 2.75, .wire = wire, .local = times<2>},
      .text = "as ring, in both directions",
      .peers_read_input = false,
      .peers_write_output = true,
      .ring_directions = 2,
      .only_where_measured = true,
      .min_threads = 64,
      .takes = moves,
      .geometry = ring_geometry,
      .host = AllGatherRing::host,
      .cuda = AllGatherRing::cuda};
  static constexpr Traffic kTraffic{.hops = "2 + 0.5 n", .wire = "(n-1)/n B, to both neighbours"};
};

}  // namespace tutti
