// all_reduce/ring_bidirectional: as ring, but what is summed up comes around both ways.
#pragma once

#include "algorithms/all_reduce/ring.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct AllReduceRingBidirectional {
  // The same bytes; but both directions leave over the same links, and large messages are slower
  // for it. As much as has the two rings cross where they did on 3 and 4 H200s, between 8 and 16
  // MiB.
  static double wire(int ranks) { return (ranks > 2 ? 1.05 : 1) * two_shot_wire(ranks); }

  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce/ring_bidirectional",
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kSameOnAllRanks,
      .cost = {.steps = -4, .steps_per_rank = 6.85, .wire = wire, .local = times<5>},
      .text = "as ring, in both directions",
      .peers_read_input = false,
      .peers_write_output = true,
      .in_place_needs_staging = true,
      .ring_directions = 2,
      .min_threads = 64,
      .takes = rings_take,
      .geometry = ring_geometry,
      .host = AllReduceRing::host,
      .cuda = AllReduceRing::cuda};
  static constexpr Traffic kTraffic{.hops = "3 + 1.5 n", .wire = "2 (n-1)/n B, to both neighbours"};
};

}  // namespace tutti
