#include "topology/nodes.hpp"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "base/hash.hpp"

namespace tutti {

Result<NodeLayout> parse_node_layout(std::string_view text) {
  constexpr std::string_view kVnode = "vnode:";
  if (text == "system") return NodeLayout{};
  if (text == "nolocal") return NodeLayout{NodeLayout::Kind::kNoLocal};
  if (text.starts_with(kVnode)) {
    int nodes = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + kVnode.size(), end, nodes);
    if (read.ec == std::errc() && read.ptr == end && nodes > 0) {
      return NodeLayout{NodeLayout::Kind::kVnode, nodes};
    }
  }
  return Status(StatusCode::kInvalidArgument,
                fmt::format("TUTTI_TOPOLOGY: unknown layout '{}'; known are system, nolocal, "
                            "vnode:K (K nodes of equally many ranks)",
                            text));
}

Result<std::uint64_t> node_key(const NodeLayout& layout, std::uint64_t host, int rank, int ranks) {
  if (layout.kind == NodeLayout::Kind::kSystem) return host;
  const int nodes = layout.kind == NodeLayout::Kind::kVnode ? layout.nodes : ranks;
  if (ranks % nodes != 0) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("TUTTI_TOPOLOGY=vnode:{}: {} ranks do not make {} nodes of equally "
                              "many ranks",
                              nodes, ranks, nodes));
  }
  const int node = rank / (ranks / nodes);
  return Hash().add(host).add(static_cast<std::uint64_t>(node)).value();
}

std::vector<int> number_nodes(const std::vector<std::uint64_t>& keys) {
  std::map<std::uint64_t, int> numbers;
  std::vector<int> node_of;
  node_of.reserve(keys.size());
  for (const std::uint64_t key : keys) {
    node_of.push_back(numbers.try_emplace(key, static_cast<int>(numbers.size())).first->second);
  }
  if (numbers.size() <= 1) node_of.clear();
  return node_of;
}

}  // namespace tutti
