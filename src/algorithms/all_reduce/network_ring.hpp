// all_reduce/network_ring: sums go around all ranks, and then come around again, over the network.
//
// Cost: 2(n-1) hops; 2(n-1)/n x bytes over one link.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/network_costs.hpp"
#include "algorithms/network_ring.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct AllReduceNetworkRing {
  // Rank r makes share r + 1 whole.
  static NetworkRing ring(const NetworkShape& shape, bool both_ways) {
    NetworkRing ring = ring_of_all(shape, shape.rank + 1, both_ways);
    for (int part = 0; part < shape.ranks; ++part) {
      const Range share = share_of(shape, part, shape.ranks);
      ring.shares.push_back(share);
      ring.own.push_back(input_at(share.first));
      ring.into.push_back(output_at(share.first));
    }
    return ring;
  }
  static NetworkProgram around(const NetworkShape& shape, bool both_ways) {
    const NetworkRing shares = ring(shape, both_ways);
    NetworkSteps steps(shape);
    NetworkRingSteps turns(steps, shares);
    turns.add();
    turns.spread();
    return steps.take();
  }
  static NetworkProgram program(const NetworkShape& shape) { return around(shape, false); }

  static Crossing crossing(int ranks, int) { return {2.0 * (ranks - 1), two_shot_wire(ranks)}; }

  static constexpr Algorithm kAlgorithm{.id = "all_reduce/network_ring",
                                        .needs = kNeedsNetwork,
                                        .max_ranks_host = kMostNetworkRanks,
                                        .max_ranks_cuda = kMostNetworkRanks,
                                        .order = Order::kSameOnAllRanks,
                                        .cost = {.between = crossing},
                                        .text = "ring of messages: reduce-scatter, then all-gather",
                                        .peers_read_input = false,
                                        .ring_directions = 1,
                                        .takes = network_rounds_take,
                                        .geometry = library_geometry,
                                        .network = program};
  static constexpr Traffic kTraffic{.hops = "2 (n-1)", .wire = "2 (n-1)/n B, to one neighbour"};
};

}  // namespace tutti
