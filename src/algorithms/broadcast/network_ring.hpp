// broadcast/network_ring: the message goes from rank to rank, chunk by chunk: for large ones.
//
// Cost: n - 1 hops; all bytes once over every link.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/network_costs.hpp"
#include "algorithms/network_steps.hpp"

namespace tutti {

struct BroadcastNetworkRing {
  static NetworkProgram program(const NetworkShape& shape) {
    NetworkSteps steps(shape);
    const Range all{0, shape.count};
    const int next = (shape.rank + 1) % shape.ranks;
    const int before = (shape.rank + shape.ranks - 1) % shape.ranks;
    const bool is_root = shape.rank == shape.root;
    int came = kNoStep;
    if (!is_root) came = steps.receive(before, all, output_at(0));
    const NetworkPlace from = is_root ? input_at(0) : output_at(0);
    if (next != shape.root) steps.send(next, all, from, {came});
    if (is_root) steps.copy(all, input_at(0), output_at(0));
    return steps.take();
  }

  static Crossing crossing(int ranks, int) { return {ranks - 1.0, root_wire(ranks)}; }

  static constexpr Algorithm kAlgorithm{.id = "broadcast/network_ring",
                                        .collective = Collective::kBroadcast,
                                        .needs = kNeedsNetwork,
                                        .max_ranks_host = kMostNetworkRanks,
                                        .max_ranks_cuda = kMostNetworkRanks,
                                        .cost = {.between = crossing},
                                        .text = "messages from rank to rank, chunk by chunk",
                                        .peers_read_input = false,
                                        .takes = moves,
                                        .geometry = library_geometry,
                                        .network = program};
  static constexpr Traffic kTraffic{.hops = "n - 1", .wire = "B"};
};

}  // namespace tutti
