// Which number a rank's list of peers has for a peer.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "tutti/status.hpp"

namespace tutti::model {

class PeerNumbers {
 public:
  explicit PeerNumbers(const std::vector<int>& peers) {
    by_peer_.reserve(peers.size());
    for (std::size_t number = 0; number < peers.size(); ++number) {
      by_peer_.emplace_back(peers[number], static_cast<int>(number));
    }
    std::sort(by_peer_.begin(), by_peer_.end());
  }
  // -1: is none.
  int of(int peer) const {
    const auto found = std::lower_bound(by_peer_.begin(), by_peer_.end(), std::pair{peer, -1});
    return found == by_peer_.end() || found->first != peer ? -1 : found->second;
  }

 private:
  std::vector<std::pair<int, int>> by_peer_;  // sorted
};

inline Status no_such_peer(int rank, int peer) {
  return {StatusCode::kInvalidArgument,
          fmt::format("the program has no end: rank {} has messages with rank {}, which has none "
                      "with it",
                      rank, peer)};
}

}  // namespace tutti::model
