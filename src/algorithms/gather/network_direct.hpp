// gather/network_direct: every rank sends its piece to the root.
//
// Cost: 1 hop; (n-1)/n x bytes over the links of the root.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/network_costs.hpp"
#include "algorithms/network_steps.hpp"

namespace tutti {

struct GatherNetworkDirect {
  static NetworkProgram program(const NetworkShape& shape) {
    NetworkSteps steps(shape);
    const Range own = piece_of(shape, shape.rank);
    if (shape.rank != shape.root) {
      steps.send(shape.root, own, input_at(0));
      return steps.take();
    }
    receive_pieces(steps, shape);
    steps.copy(own, input_at(0), output_at(own.first));
    return steps.take();
  }

  static Crossing crossing(int ranks, int) {
    return {1 + messages_to_all(ranks), pieces_wire(ranks)};
  }

  static constexpr Algorithm kAlgorithm{.id = "gather/network_direct",
                                        .collective = Collective::kGather,
                                        .needs = kNeedsNetwork,
                                        .max_ranks_host = kMostNetworkRanks,
                                        .max_ranks_cuda = kMostNetworkRanks,
                                        .cost = {.between = crossing},
                                        .text = "messages to the root",
                                        .peers_read_input = false,
                                        .takes = moves,
                                        .geometry = library_geometry,
                                        .network = program};
  static constexpr Traffic kTraffic{.hops = "1", .wire = "(n-1)/n B, to the root"};
};

}  // namespace tutti
