// reduce_scatter/network_ring: sums go around all ranks, from both sides to the rank that gets
// them.
//
// Cost: ceil((n-1)/2) hops; (n-1)/n x bytes over one link. Scratch: two pieces each way, where sums
// pass by turns.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/network_costs.hpp"
#include "algorithms/network_ring.hpp"

namespace tutti {

struct ReduceScatterNetworkRing {
  static constexpr int kSlots = 2;  // each way: one is sent while the other is received

  static NetworkProgram program(const NetworkShape& shape) {
    NetworkRing ring = ring_of_all(shape, shape.rank, !shape.one_way);
    NetworkSteps steps(shape);
    const std::size_t slot = divided(shape.count, 1, shape.unit);
    const std::size_t slots = steps.take_scratch(2 * kSlots, slot);
    // Steps wait for each other by the place in a piece.
    for (int rank = 0; rank < shape.ranks; ++rank) {
      ring.shares.push_back({0, shape.count});
      ring.own.push_back(input_at(piece_of(shape, rank).first));
      ring.into.push_back(output_at(0));
    }
    const auto passes = [&](int share, int step, int first) {
      const int index = first + step % kSlots;
      ring.into[static_cast<std::size_t>(share)] =
          scratch_at(slots + slot * static_cast<std::size_t>(index));
    };
    const RingMember& member = ring.member;
    for (int s = 1; s < member.steps.forward; ++s) passes(member.add_forward(s), s, 0);
    for (int s = 1; s < member.steps.reverse; ++s) passes(member.add_reverse(s), s, kSlots);
    NetworkRingSteps(steps, ring).add();
    return steps.take();
  }

  static Crossing crossing(int ranks, int) {
    return {static_cast<double>(ring_steps(ranks, true).forward), pieces_wire(ranks)};
  }

  static constexpr Algorithm kAlgorithm{.id = "reduce_scatter/network_ring",
                                        .collective = Collective::kReduceScatter,
                                        .needs = kNeedsNetwork,
                                        .max_ranks_host = kMostNetworkRanks,
                                        .max_ranks_cuda = kMostNetworkRanks,
                                        .order = Order::kNone,
                                        .cost = {.between = crossing},
                                        .text = "sums go around a ring of messages, both ways",
                                        .peers_read_input = false,
                                        .takes = network_rounds_take,
                                        .geometry = library_geometry,
                                        .network = program};
  static constexpr Traffic kTraffic{.hops = "ceil((n-1)/2)",
                                    .wire = "(n-1)/n B, to both neighbours"};
};

}  // namespace tutti
