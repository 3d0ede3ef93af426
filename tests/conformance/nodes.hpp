// Ranks of one host that are taken for several nodes, so that rows of the network run: --topology.
#pragma once

#include <algorithm>
#include <stdlib.h>
#include <string>
#include <vector>

#include "conformance/cell.hpp"
#include "drivers/network.hpp"
#include "support/check.hpp"
#include "support/run_ranks.hpp"

namespace tutti::test {

inline constexpr const char* kTopologyHelp =
    "nolocal or vnode:K: on plain buffers, what is chosen and each row of the network, over the "
    "loopback interface unless TUTTI_SOCKET_IFNAME names another";

// Before anything reads settings. Why there is no network; empty where there is one.
inline std::string become_nodes(const std::string& topology) {
  ::setenv("TUTTI_TOPOLOGY", topology.c_str(), 1);
  ::setenv("TUTTI_SOCKET_IFNAME", "lo", 0);
  return run_isolated([] { require_ok(real_network()->usable(true)); }, kPatience);
}

// Ranks on several nodes have no symmetric memory.
template <class AnyCell>
void keep_plain(std::vector<AnyCell>& cells) {
  std::erase_if(cells, [](const AnyCell& cell) { return cell.buffers != BufferKind::kPlain; });
}

}  // namespace tutti::test
