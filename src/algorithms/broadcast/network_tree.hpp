// broadcast/network_tree: a binomial tree of messages. Whoever has the message sends it on.
//
// Cost: ceil(log2 n) hops; as many times all bytes, over the links of the root.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/network_costs.hpp"
#include "algorithms/network_steps.hpp"

namespace tutti {

struct BroadcastNetworkTree {
  static NetworkProgram program(const NetworkShape& shape) {
    NetworkSteps steps(shape);
    const Range all{0, shape.count};
    // Counted from the root. The parent of a rank is that one without its lowest bit.
    const int self = (shape.rank - shape.root + shape.ranks) % shape.ranks;
    const auto rank_of = [&](int index) { return (index + shape.root) % shape.ranks; };
    int lowest = 1;
    while (lowest < shape.ranks && (self & lowest) == 0) lowest <<= 1;
    const bool is_root = self == 0;
    int came = kNoStep;
    if (!is_root) came = steps.receive(rank_of(self - lowest), all, output_at(0));
    for (int bit = lowest >> 1; bit > 0; bit >>= 1) {  // the largest part of the tree first
      const NetworkPlace from = is_root ? input_at(0) : output_at(0);
      if (self + bit < shape.ranks) steps.send(rank_of(self + bit), all, from, {came});
    }
    if (is_root) steps.copy(all, input_at(0), output_at(0));
    return steps.take();
  }

  static Crossing crossing(int ranks, int) {
    return {static_cast<double>(doubling_rounds(ranks)),
            static_cast<double>(doubling_rounds(ranks))};
  }

  static constexpr Algorithm kAlgorithm{.id = "broadcast/network_tree",
                                        .collective = Collective::kBroadcast,
                                        .needs = kNeedsNetwork,
                                        .max_ranks_host = kMostNetworkRanks,
                                        .max_ranks_cuda = kMostNetworkRanks,
                                        .cost = {.between = crossing},
                                        .text = "binomial tree of messages",
                                        .peers_read_input = false,
                                        .takes = moves,
                                        .geometry = library_geometry,
                                        .network = program};
  static constexpr Traffic kTraffic{.hops = "ceil(log2 n)",
                                    .wire = "B ceil(log2 n), from the root"};
};

}  // namespace tutti
