// all_reduce/network_one_shot: every rank sends its input to all others, and adds all in rank
// order.
//
// Cost: 1 hop; (n-1) x bytes. Scratch: (n-1) x bytes.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/network_costs.hpp"
#include "algorithms/network_steps.hpp"

namespace tutti {

struct AllReduceNetworkOneShot {
  static NetworkProgram program(const NetworkShape& shape) {
    NetworkSteps steps(shape);
    const Range all{0, shape.count};
    const std::size_t slot = divided(shape.count, 1, shape.unit);
    const std::size_t slots = steps.take_scratch(shape.ranks - 1, slot);
    std::vector<int> before;  // in place the sum takes the place of what is sent
    for (const int peer : steps.others()) before.push_back(steps.send(peer, all, input_at(0)));
    for (const int peer : steps.others()) {
      const NetworkPlace into = scratch_at(slots + slot * slot_of(shape, peer));
      before.push_back(steps.receive(peer, all, into));
    }
    steps.sum(all, in_rank_order(shape, slots, slot, input_at(0)), output_at(0), before);
    return steps.take();
  }

  static Crossing crossing(int ranks, int nodes) {
    const double wire = kExchangeWhole * one_shot_wire(ranks);
    return {1 + messages_to_all(ranks), leaving_node(wire, ranks, nodes)};
  }

  static constexpr Algorithm kAlgorithm{.id = "all_reduce/network_one_shot",
                                        .needs = kNeedsNetwork,
                                        .max_ranks_host = kMostNetworkRanks,
                                        .max_ranks_cuda = kMostNetworkRanks,
                                        .order = Order::kRankOrder,
                                        .cost = {.between = crossing},
                                        .text = "messages of whole inputs to all",
                                        .peers_read_input = false,
                                        .takes = network_order_takes,
                                        .geometry = library_geometry,
                                        .network = program};
  static constexpr Traffic kTraffic{.hops = "1", .wire = "(n-1) B"};
};

}  // namespace tutti
