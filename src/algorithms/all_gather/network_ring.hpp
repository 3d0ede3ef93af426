// all_gather/network_ring: pieces go around all ranks, both ways.
//
// Cost: ceil((n-1)/2) hops; (n-1)/n x bytes over one link.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/network_costs.hpp"
#include "algorithms/network_ring.hpp"

namespace tutti {

struct AllGatherNetworkRing {
  static NetworkProgram program(const NetworkShape& shape) {
    NetworkRing ring = ring_of_all(shape, shape.rank, !shape.one_way);
    for (int rank = 0; rank < shape.ranks; ++rank) {
      ring.shares.push_back(piece_of(shape, rank));
      ring.own.push_back(input_at(0));  // of this rank's alone
      ring.into.push_back(output_at(piece_of(shape, rank).first));
    }
    NetworkSteps steps(shape);
    const Range own = piece_of(shape, shape.rank);
    steps.copy(own, input_at(0), output_at(own.first));
    NetworkRingSteps(steps, ring).spread();
    return steps.take();
  }

  static Crossing crossing(int ranks, int) {
    return {static_cast<double>(ring_steps(ranks, true).forward), pieces_wire(ranks)};
  }

  static constexpr Algorithm kAlgorithm{.id = "all_gather/network_ring",
                                        .collective = Collective::kAllGather,
                                        .needs = kNeedsNetwork,
                                        .max_ranks_host = kMostNetworkRanks,
                                        .max_ranks_cuda = kMostNetworkRanks,
                                        .cost = {.between = crossing},
                                        .text = "blocks go around a ring of messages, both ways",
                                        .peers_read_input = false,
                                        .takes = moves,
                                        .geometry = library_geometry,
                                        .network = program};
  static constexpr Traffic kTraffic{.hops = "ceil((n-1)/2)",
                                    .wire = "(n-1)/n B, to both neighbours"};
};

}  // namespace tutti
