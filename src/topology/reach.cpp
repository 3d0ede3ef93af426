// Which ranks are on one node, and how they reach each other.
#include <algorithm>

#include "topology/topology.hpp"

namespace tutti {
namespace {

// How many ranks each node has.
std::vector<int> ranks_per_node(const Topology& topology) {
  std::vector<int> ranks(static_cast<std::size_t>(topology.nodes()));
  if (topology.node_of.empty()) ranks[0] = topology.ranks;
  for (const int node : topology.node_of) ++ranks[static_cast<std::size_t>(node)];
  return ranks;
}

// Two ranks of one node; nothing where every rank has a node of its own.
std::optional<std::pair<int, int>> neighbours(const Topology& topology) {
  std::vector<int> first(static_cast<std::size_t>(topology.nodes()), -1);
  for (int rank = 0; rank < topology.ranks; ++rank) {
    int& other = first[static_cast<std::size_t>(topology.node(rank))];
    if (other >= 0) return std::pair(other, rank);
    other = rank;
  }
  return std::nullopt;
}

std::optional<std::pair<int, int>> pair_within_nodes_without(const Topology& topology, Reach way) {
  if (!includes(topology.within_nodes, way)) return neighbours(topology);
  for (const PairReach& pair : topology.limited) {
    const bool on_one = topology.node(pair.from) == topology.node(pair.to);
    if (on_one && !includes(pair.reach, way)) return std::pair(pair.from, pair.to);
  }
  return std::nullopt;
}

std::optional<std::pair<int, int>> pair_between_nodes_without(const Topology& topology, Reach way) {
  if (topology.nodes() == 1) return std::nullopt;
  if (!includes(topology.between_nodes, way)) {
    int other = 1;
    while (topology.node(other) == topology.node(0)) ++other;
    return std::pair(0, other);
  }
  for (const PairReach& pair : topology.limited) {
    const bool on_two = topology.node(pair.from) != topology.node(pair.to);
    if (on_two && !includes(pair.reach, way)) return std::pair(pair.from, pair.to);
  }
  return std::nullopt;
}

}  // namespace

int Topology::node(int rank) const {
  return node_of.empty() ? 0 : node_of[static_cast<std::size_t>(rank)];
}

int Topology::nodes() const {
  return node_of.empty() ? 1 : *std::max_element(node_of.begin(), node_of.end()) + 1;
}

int Topology::least_ranks_on_a_node() const { return std::ranges::min(ranks_per_node(*this)); }

int Topology::most_ranks_on_a_node() const { return std::ranges::max(ranks_per_node(*this)); }

bool Topology::has_even_nodes() const {
  return nodes() > 1 && least_ranks_on_a_node() == most_ranks_on_a_node();
}

Reach Topology::reach(int from, int to) const {
  const Reach usual = node(from) == node(to) ? within_nodes : between_nodes;
  const auto limit = std::ranges::find_if(
      limited, [&](const PairReach& pair) { return pair.from == from && pair.to == to; });
  return limit == limited.end() ? usual : usual & limit->reach;
}

std::optional<std::pair<int, int>> Topology::pair_without(Reach way) const {
  const auto pair = pair_within_nodes_without(*this, way);
  return pair ? pair : pair_between_nodes_without(*this, way);
}

bool Topology::peer_access_within_nodes() const {
  return !pair_within_nodes_without(*this, Reach::kPeerMemory);
}

}  // namespace tutti
