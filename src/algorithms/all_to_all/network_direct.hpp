// all_to_all/network_direct: every rank sends the others their pieces.
//
// Cost: 1 hop; (n-1)/n x bytes, over links to all other ranks.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/network_costs.hpp"
#include "algorithms/network_steps.hpp"

namespace tutti {

struct AllToAllNetworkDirect {
  static NetworkProgram program(const NetworkShape& shape) {
    NetworkSteps steps(shape);
    const Range own = piece_of(shape, shape.rank);
    send_pieces(steps, shape);
    receive_pieces(steps, shape);
    steps.copy(own, input_at(own.first), output_at(own.first));
    return steps.take();
  }

  static Crossing crossing(int ranks, int nodes) {
    return {1 + messages_to_all(ranks), leaving_node(pieces_wire(ranks), ranks, nodes)};
  }

  static constexpr Algorithm kAlgorithm{.id = "all_to_all/network_direct",
                                        .collective = Collective::kAllToAll,
                                        .needs = kNeedsNetwork,
                                        .max_ranks_host = kMostNetworkRanks,
                                        .max_ranks_cuda = kMostNetworkRanks,
                                        .cost = {.between = crossing},
                                        .text = "messages of blocks to their ranks",
                                        .peers_read_input = false,
                                        .takes = moves,
                                        .geometry = library_geometry,
                                        .network = program};
  static constexpr Traffic kTraffic{.hops = "1", .wire = "(n-1)/n B"};
};

}  // namespace tutti
