// reduce/network_direct: every rank sends its input to the root, which adds in rank order.
//
// Cost: 1 hop; (n-1) x bytes over the links of the root. Scratch: as much.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/network_costs.hpp"
#include "algorithms/network_steps.hpp"

namespace tutti {

struct ReduceNetworkDirect {
  static NetworkProgram program(const NetworkShape& shape) {
    NetworkSteps steps(shape);
    const Range all{0, shape.count};
    const std::size_t slot = divided(shape.count, 1, shape.unit);
    const std::size_t slots = steps.take_scratch(shape.ranks - 1, slot);
    if (shape.rank != shape.root) {
      steps.send(shape.root, all, input_at(0));
      return steps.take();
    }
    std::vector<int> came;
    for (const int peer : steps.others()) {
      const NetworkPlace into = scratch_at(slots + slot * slot_of(shape, peer));
      came.push_back(steps.receive(peer, all, into));
    }
    steps.sum(all, in_rank_order(shape, slots, slot, input_at(0)), output_at(0), came);
    return steps.take();
  }

  static Crossing crossing(int ranks, int) {
    return {1 + messages_to_all(ranks), one_shot_wire(ranks)};
  }

  static constexpr Algorithm kAlgorithm{.id = "reduce/network_direct",
                                        .collective = Collective::kReduce,
                                        .needs = kNeedsNetwork,
                                        .max_ranks_host = kMostNetworkRanks,
                                        .max_ranks_cuda = kMostNetworkRanks,
                                        .order = Order::kRankOrder,
                                        .cost = {.between = crossing},
                                        .text = "messages to the root",
                                        .peers_read_input = false,
                                        .takes = network_order_takes,
                                        .geometry = library_geometry,
                                        .network = program};
  static constexpr Traffic kTraffic{.hops = "1", .wire = "(n-1) B, to the root"};
};

}  // namespace tutti
