// barrier/network_dissemination: in round k every rank tells the 2^k-th after it that it is there,
// and whom it knows to be.
//
// Cost: ceil(log2 n) hops (messages without a payload).
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/network_costs.hpp"
#include "algorithms/network_steps.hpp"

namespace tutti {

struct BarrierNetworkDissemination {
  static NetworkProgram program(const NetworkShape& shape) {
    NetworkSteps steps(shape);
    std::vector<int> known;
    for (int round = 0; round < doubling_rounds(shape.ranks); ++round) {
      const int far = 1 << round;
      steps.add_always({.kind = NetworkStep::Kind::kSend,
                        .peer = (shape.rank + far) % shape.ranks,
                        .after = known});
      known.push_back(steps.add_always({.kind = NetworkStep::Kind::kReceive,
                                        .peer = (shape.rank + shape.ranks - far) % shape.ranks}));
    }
    return steps.take();
  }

  static Crossing crossing(int ranks, int) {
    return {static_cast<double>(doubling_rounds(ranks)), 0};
  }

  static constexpr Algorithm kAlgorithm{.id = "barrier/network_dissemination",
                                        .collective = Collective::kBarrier,
                                        .needs = kNeedsNetwork,
                                        .max_ranks_host = kMostNetworkRanks,
                                        .max_ranks_cuda = kMostNetworkRanks,
                                        .cost = {.between = crossing},
                                        .text = "rounds of messages without a payload",
                                        .peers_read_input = false,
                                        .takes = moves,
                                        .geometry = library_geometry,
                                        .network = program};
  static constexpr Traffic kTraffic{.hops = "ceil(log2 n)", .wire = "nothing"};
};

}  // namespace tutti
