// reduce_scatter/network_direct: every rank sends the others their pieces, and adds what it gets in
// rank order.
//
// Cost: 1 hop; (n-1)/n x bytes, over links to all other ranks. Scratch: as much.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/network_costs.hpp"
#include "algorithms/network_steps.hpp"

namespace tutti {

struct ReduceScatterNetworkDirect {
  static NetworkProgram program(const NetworkShape& shape) {
    NetworkSteps steps(shape);
    const Range own = piece_of(shape, shape.rank);
    const std::size_t slot = divided(shape.count, 1, shape.unit);
    const std::size_t slots = steps.take_scratch(shape.ranks - 1, slot);
    std::vector<int> came;
    send_pieces(steps, shape);
    for (const int peer : steps.others()) {
      const NetworkPlace into = scratch_at(slots + slot * slot_of(shape, peer));
      came.push_back(steps.receive(peer, own, into));
    }
    steps.sum(own, in_rank_order(shape, slots, slot, input_at(own.first)), output_at(0), came);
    return steps.take();
  }

  static Crossing crossing(int ranks, int nodes) {
    return {1 + messages_to_all(ranks), leaving_node(pieces_wire(ranks), ranks, nodes)};
  }

  static constexpr Algorithm kAlgorithm{.id = "reduce_scatter/network_direct",
                                        .collective = Collective::kReduceScatter,
                                        .needs = kNeedsNetwork,
                                        .max_ranks_host = kMostNetworkRanks,
                                        .max_ranks_cuda = kMostNetworkRanks,
                                        .order = Order::kRankOrder,
                                        .cost = {.between = crossing},
                                        .text = "messages of blocks to their ranks",
                                        .peers_read_input = false,
                                        .takes = network_order_takes,
                                        .geometry = library_geometry,
                                        .network = program};
  static constexpr Traffic kTraffic{.hops = "1", .wire = "(n-1)/n B"};
};

}  // namespace tutti
