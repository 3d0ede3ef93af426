// all_reduce/network_ring_bidirectional: as network_ring, both ways in both phases. Sums of a share
// come from both sides, and meet at the rank that makes it whole.
//
// Cost: 2 ceil((n-1)/2) hops; the same bytes.
#pragma once

#include "algorithms/all_reduce/network_ring.hpp"

namespace tutti {

struct AllReduceNetworkRingBidirectional {
  static NetworkProgram program(const NetworkShape& shape) {
    return AllReduceNetworkRing::around(shape, true);
  }

  // Both directions share a link. Above some size the other ring is meant (planning/rings.hpp).
  static Crossing crossing(int ranks, int) {
    return {2.0 * ring_steps(ranks, true).forward, two_shot_wire(ranks)};
  }

  static constexpr Algorithm kAlgorithm{.id = "all_reduce/network_ring_bidirectional",
                                        .needs = kNeedsNetwork,
                                        .max_ranks_host = kMostNetworkRanks,
                                        .max_ranks_cuda = kMostNetworkRanks,
                                        .order = Order::kSameOnAllRanks,
                                        .cost = {.between = crossing},
                                        .text = "as network_ring, both ways in both phases",
                                        .peers_read_input = false,
                                        .ring_directions = 2,
                                        .takes = network_rounds_take,
                                        .geometry = library_geometry,
                                        .network = program};
  static constexpr Traffic kTraffic{.hops = "2 ceil((n-1)/2)",
                                    .wire = "2 (n-1)/n B, to both neighbours"};
};

}  // namespace tutti
