#include "model/fold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/try.hpp"

namespace tutti::model {
namespace {

// Numbers of peers: each rank's list, ordered by the peers.
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
  std::vector<std::pair<int, int>> by_peer_;
};

Status no_such_peer(int rank, int peer) {
  return {
      StatusCode::kInvalidArgument,
      fmt::format("rank {} has messages with rank {}, whose program has none with it", rank, peer)};
}

}  // namespace

Result<Fold> unfolded(ClusterProgram& program) {
  Fold fold;
  std::vector<PeerNumbers> numbers;
  for (int rank = 0; rank < program.cluster().ranks(); ++rank) {
    FoldedRank one;
    one.rank = rank;
    TUTTI_ASSIGN(one.behaviour, program.behaviour(rank));
    numbers.emplace_back(one.behaviour.peers);
    fold.push_back(std::move(one));
  }
  for (FoldedRank& one : fold) {
    for (const int peer : one.behaviour.peers) {
      const int number = numbers[static_cast<std::size_t>(peer)].of(one.rank);
      if (number < 0) return no_such_peer(one.rank, peer);
      one.peers.push_back({peer, number});
    }
  }
  return fold;
}

}  // namespace tutti::model
