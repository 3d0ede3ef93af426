// Which ranks are on one node: those of one host, or what TUTTI_TOPOLOGY says. It only takes hosts
// apart, so that one host can show what several do.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tutti/status.hpp"

namespace tutti {

// What TUTTI_TOPOLOGY says.
struct NodeLayout {
  enum class Kind : std::uint8_t {
    kSystem,   // hosts, as they are
    kNoLocal,  // every rank is a node
    kVnode,    // `nodes` nodes, each of as many consecutive ranks
  };
  Kind kind = Kind::kSystem;
  int nodes = 1;
};

// kInvalidArgument lists what is known.
Result<NodeLayout> parse_node_layout(std::string_view text);

// Names the node of a rank of `host`: equal where two ranks share one. kInvalidArgument where the
// ranks cannot be divided so.
Result<std::uint64_t> node_key(const NodeLayout& layout, std::uint64_t host, int rank, int ranks);

// Numbers what keys name, from 0 in the order of ranks. Empty where they are one node.
std::vector<int> number_nodes(const std::vector<std::uint64_t>& keys);

}  // namespace tutti
