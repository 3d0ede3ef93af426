// send_recv/network_direct: one message.
//
// Cost: 1 hop; the message.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/network_costs.hpp"
#include "algorithms/network_steps.hpp"

namespace tutti {

struct SendRecvNetworkDirect {
  static NetworkProgram program(const NetworkShape& shape) {
    NetworkSteps steps(shape);
    const Range all{0, shape.count};
    if (shape.root == shape.to) {
      steps.copy(all, input_at(0), output_at(0));
    } else if (shape.rank == shape.root) {
      steps.send(shape.to, all, input_at(0));
    } else if (shape.rank == shape.to) {
      steps.receive(shape.root, all, output_at(0));
    }
    return steps.take();
  }

  static Crossing crossing(int, int) { return {1, 1}; }

  static constexpr Algorithm kAlgorithm{.id = "send_recv/network_direct",
                                        .collective = Collective::kSendRecv,
                                        .needs = kNeedsNetwork,
                                        .max_ranks_host = kMostNetworkRanks,
                                        .max_ranks_cuda = kMostNetworkRanks,
                                        .cost = {.between = crossing},
                                        .text = "a message",
                                        .peers_read_input = false,
                                        .takes = moves,
                                        .geometry = library_geometry,
                                        .network = program};
  static constexpr Traffic kTraffic{.hops = "1", .wire = "the message"};
};

}  // namespace tutti
