// all_reduce/network_direct: every rank sends each other rank its share, adds what it gets in rank
// order, and sends everybody the sum.
//
// Cost: 2 hops; 2(n-1)/n x bytes, over links to all other ranks. Scratch: (n-1)/n x bytes.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/network_costs.hpp"
#include "algorithms/network_steps.hpp"

namespace tutti {

struct AllReduceNetworkDirect {
  static NetworkProgram program(const NetworkShape& shape) {
    NetworkSteps steps(shape);
    const Range own = share_of(shape, shape.rank, shape.ranks);
    const std::size_t slot = divided(shape.count, shape.ranks, shape.unit);
    const std::size_t slots = steps.take_scratch(shape.ranks - 1, slot);
    std::vector<int> sent(static_cast<std::size_t>(shape.ranks), kNoStep), came;
    for (const int peer : steps.others()) {
      const Range share = share_of(shape, peer, shape.ranks);
      sent[static_cast<std::size_t>(peer)] = steps.send(peer, share, input_at(share.first));
    }
    for (const int peer : steps.others()) {
      const NetworkPlace into = scratch_at(slots + slot * slot_of(shape, peer));
      came.push_back(steps.receive(peer, own, into));
    }
    const int whole = steps.sum(own, in_rank_order(shape, slots, slot, input_at(own.first)),
                                output_at(own.first), came);
    for (const int peer : steps.others()) steps.send(peer, own, output_at(own.first), {whole});
    for (const int peer : steps.others()) {
      const Range share = share_of(shape, peer, shape.ranks);
      const int before = sent[static_cast<std::size_t>(peer)];
      steps.receive(peer, share, output_at(share.first), {before});
    }
    return steps.take();
  }

  static Crossing crossing(int ranks, int nodes) {
    const double wire = (ranks > 2 ? kMeetAtAPort : 1) * two_shot_wire(ranks);
    return {2 + 2 * messages_to_all(ranks), leaving_node(wire, ranks, nodes)};
  }

  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce/network_direct",
      .needs = kNeedsNetwork,
      .max_ranks_host = kMostNetworkRanks,
      .max_ranks_cuda = kMostNetworkRanks,
      .order = Order::kRankOrder,
      .cost = {.between = crossing},
      .text = "messages of shards to their ranks, and of sums to all",
      .peers_read_input = false,
      .takes = network_order_takes,
      .geometry = library_geometry,
      .network = program};
  static constexpr Traffic kTraffic{.hops = "2", .wire = "2 (n-1)/n B"};
};

}  // namespace tutti
