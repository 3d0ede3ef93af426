// Costs that algorithms of several collectives have in common, as multiples of the message.
#pragma once

#include <algorithm>
#include <bit>

#include "algorithms/catalogue.hpp"

namespace tutti {

// Rounds in which what each of them knows doubles: ceil(log2(members)).
constexpr int doubling_rounds(int members) {
  return std::bit_width(static_cast<unsigned>(members) - 1);
}

// The same for any number of ranks.
template <int kTimes>
double times(int) {
  return kTimes;
}

// All of it to every other rank.
inline double one_shot_wire(int ranks) { return ranks - 1; }
// A share to every other rank, and its sum again.
inline double two_shot_wire(int ranks) { return 2.0 * (ranks - 1) / ranks; }
// All of it once over the root's links.
inline double root_wire(int ranks) { return ranks > 1 ? 1 : 0; }

// Of a node's link: every rank on it sends so many times the message to ranks on other nodes, if it
// sends `all` to all others.
inline double leaving_node(double all, int ranks, int nodes) {
  if (ranks <= 1) return 0;
  const double on_node = static_cast<double>(ranks) / nodes;
  return all * on_node * (ranks - on_node) / (ranks - 1);
}

// NCCL between nodes, where other costs are those on a node: a chain of nodes, or a ring that
// passes each node once; trees of nodes in all_reduce, where two nodes exchange halves; and
// messages from rank to rank, of which those to one node share its link.
template <double (*kWire)(int ranks)>
Crossing nccl_chain(int ranks, int nodes) {
  return {nodes - 1.0, kWire(ranks)};
}
inline Crossing nccl_trees(int ranks, int nodes) {
  const double trees = nodes == 2 ? 1 : 2;
  return {2.0 * doubling_rounds(nodes), std::min(trees, two_shot_wire(ranks))};
}
template <double (*kWire)(int ranks)>
Crossing nccl_messages(int ranks, int nodes) {
  return {1, leaving_node(kWire(ranks), ranks, nodes)};
}
template <double (*kWire)(int ranks)>
Crossing nccl_rooted(int ranks, int) {
  return {1, kWire(ranks)};
}

}  // namespace tutti
