// all_reduce/hierarchical: between nodes, without sending anything twice over their links. Ranks of
// a node reduce a share each; the i-th ranks of all nodes are a ring, which adds the i-th shares
// up; then ranks of a node gather the shares. The rings run beside each other.
//
// Only for nodes with equally many ranks, two nodes or more.
//
// Cost: 2 hops on a node, and 2 ceil((m-1)/2) between m nodes; each rank sends 2(m-1)/m of its
// share over a node's link. Scratch: (l-1)/l x bytes, where a node has l ranks.
#pragma once

#include <algorithm>

#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/network_costs.hpp"
#include "algorithms/network_ring.hpp"

namespace tutti {

struct AllReduceHierarchical {
  // The ranks of one node, or those at one place of all nodes; and which of them this rank is.
  struct Peers {
    std::vector<int> ranks;
    int self = 0;
    int count() const { return static_cast<int>(ranks.size()); }
    int at(int index) const { return ranks[static_cast<std::size_t>(on_ring(index, count()))]; }
  };

  static int node_of(const NetworkShape& shape, int rank) {
    return shape.node_of.empty() ? rank : shape.node_of[static_cast<std::size_t>(rank)];
  }
  static Peers on_node(const NetworkShape& shape) {
    Peers node;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      if (node_of(shape, rank) != node_of(shape, shape.rank)) continue;
      if (rank == shape.rank) node.self = node.count();
      node.ranks.push_back(rank);
    }
    return node;
  }
  // In the order of the nodes.
  static Peers on_rail(const NetworkShape& shape, int place) {
    Peers rail;
    std::vector<int> seen;  // of each node
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const auto node = static_cast<std::size_t>(node_of(shape, rank));
      seen.resize(std::max(seen.size(), node + 1));
      if (seen[node]++ != place) continue;
      if (rank == shape.rank) rail.self = rail.count();
      rail.ranks.push_back(rank);
    }
    return rail;
  }

  static NetworkProgram program(const NetworkShape& shape) {
    NetworkSteps steps(shape);
    const Peers node = on_node(shape), rail = on_rail(shape, node.self);
    const Range own = share_of(shape, node.self, node.count());
    std::vector<int> sent(static_cast<std::size_t>(node.count()), kNoStep);
    const int reduced = reduce_on_node(steps, shape, node, sent);
    const std::vector<int> whole = ring_between(steps, shape, rail, {own, reduced});
    for (int step = 1; step < node.count(); ++step) {
      steps.send(node.at(node.self + step), own, output_at(own.first), whole);
    }
    for (int step = 1; step < node.count(); ++step) {
      const int peer = on_ring(node.self + step, node.count());
      const Range share = share_of(shape, peer, node.count());
      const int before = sent[static_cast<std::size_t>(peer)];
      steps.receive(node.at(peer), share, output_at(share.first), {before});
    }
    return steps.take();
  }

  static Crossing crossing(int ranks, int nodes) {
    if (nodes < 2) return {2, two_shot_wire(ranks)};
    // Of one rank each, nothing is added or gathered on a node: a plain ring is less.
    if (nodes == ranks) return {2.5 + 2.0 * (ranks - 1), two_shot_wire(ranks)};
    return {2.5 + 2.0 * ring_steps(nodes, true).forward, two_shot_wire(nodes)};
  }

  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce/hierarchical",
      .needs = kNeedsNetwork | kNeedsEvenNodes,
      .max_ranks_host = kMostNetworkRanks,
      .max_ranks_cuda = kMostNetworkRanks,
      .order = Order::kSameOnAllRanks,
      .cost = {.between = crossing},
      .text =
          "reduce-scatter on each node, a ring between nodes per shard, all-gather on each node",
      .peers_read_input = false,
      .takes = network_rounds_take,
      .geometry = library_geometry,
      .network = program};
  static constexpr Traffic kTraffic{.hops = "2, and 2 ceil((m-1)/2) between m nodes",
                                    .wire = "2 (m-1)/m B / l, where a node has l ranks"};

 private:
  // A range of the output that is there after a step.
  struct Reduced {
    Range range;
    int after;
  };

  // The share of this rank, of its node, in the output.
  static int reduce_on_node(NetworkSteps& steps, const NetworkShape& shape, const Peers& node,
                            std::vector<int>& sent) {
    const Range own = share_of(shape, node.self, node.count());
    const std::size_t slot = divided(shape.count, node.count(), shape.unit);
    const std::size_t slots = steps.take_scratch(node.count() - 1, slot);
    for (int step = 1; step < node.count(); ++step) {
      const int peer = on_ring(node.self + step, node.count());
      const Range share = share_of(shape, peer, node.count());
      sent[static_cast<std::size_t>(peer)] =
          steps.send(node.at(peer), share, input_at(share.first));
    }
    std::vector<NetworkPlace> places;
    std::vector<int> came;
    for (int peer = 0; peer < node.count(); ++peer) {
      if (peer == node.self) {
        places.push_back(input_at(own.first));
        continue;
      }
      const auto index = static_cast<std::size_t>(peer < node.self ? peer : peer - 1);
      places.push_back(scratch_at(slots + slot * index));
      came.push_back(steps.receive(node.at(peer), own, places.back()));
    }
    return steps.add({.kind = NetworkStep::Kind::kSum,
                      .first = own.first,
                      .count = own.count,
                      .places = std::move(places),
                      .into = output_at(own.first),
                      .after = std::move(came)});
  }

  // Of this rank's share, over the ranks at its place of all nodes. The steps that complete it.
  static std::vector<int> ring_between(NetworkSteps& steps, const NetworkShape& shape,
                                       const Peers& rail, const Reduced& own) {
    NetworkRing ring{.member = {rail.count(), rail.self + 1, !shape.one_way},
                     .next = rail.at(rail.self + 1),
                     .before = rail.at(rail.self - 1),
                     .ready = {own.after}};
    for (int part = 0; part < rail.count(); ++part) {
      const Range share = shard(own.range, part, rail.count(), shape.unit);
      ring.shares.push_back(share);
      ring.own.push_back(output_at(share.first));
      ring.into.push_back(output_at(share.first));
    }
    NetworkRingSteps turns(steps, ring);
    turns.add();
    turns.spread();
    return turns.complete();
  }
};

}  // namespace tutti
