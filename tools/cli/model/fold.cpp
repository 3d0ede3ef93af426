#include "model/fold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/try.hpp"
#include "model/peer_numbers.hpp"

namespace tutti::model {
namespace {

// Programs of all ranks are made and compared up to so many steps: in some seconds.
constexpr std::size_t kMostStepsLookedAt = 6'000'000;
// Of one partition of all simulated ranks: 4 GB where two partitions are open.
constexpr std::size_t kMostSimulatedChunks = 256'000'000;

// Nodes, as one of them sees the others.
struct NodesAround {
  enum class By : std::uint8_t { kDistance, kBits };
  By by = By::kDistance;
  int nodes = 1, ranks_per_node = 1;

  // The rank as which the first node sees a rank, if `from` sees it like that.
  int as_seen_from(int from, int rank) const {
    const int node = rank / ranks_per_node;
    const int seen = by == By::kBits ? node ^ from : (node - from + nodes) % nodes;
    return seen * ranks_per_node + rank % ranks_per_node;
  }
  // Whether `one` does what `first` does at its place of the first node.
  bool alike(const FoldedRank& first, int rank, const Behaviour& one) const {
    if (first.behaviour.programs != one.programs) return false;
    return std::equal(first.behaviour.peers.begin(), first.behaviour.peers.end(), one.peers.begin(),
                      one.peers.end(), [&](int expected, int peer) {
                        return expected == as_seen_from(rank / ranks_per_node, peer);
                      });
  }
};

struct SampledRank {
  int rank = 0;
  Behaviour behaviour;
};

// The ends of the second half, of the second node and of the last one; others at random, but the
// same ones every time. Each about as much work as the first node's.
Result<std::vector<SampledRank>> sampled(ClusterProgram& program) {
  const int per_node = program.cluster().ranks_per_node, ranks = program.cluster().ranks();
  std::vector<int> which = {per_node, 2 * per_node - 1, ranks / 2, ranks - per_node, ranks - 1};
  constexpr int kAtRandom = 8;
  constexpr std::uint64_t kFactor = 6364136223846793005, kTerm = 1442695040888963407;
  constexpr int kUpper = 33;
  std::uint64_t random = 1;
  for (int k = 0; k < kAtRandom; ++k) {
    random = random * kFactor + kTerm;
    which.push_back(static_cast<int>((random >> kUpper) % static_cast<std::uint64_t>(ranks)));
  }
  std::vector<SampledRank> found;
  for (const int rank : which) {
    if (rank < per_node || rank >= ranks) continue;
    TUTTI_ASSIGN(Behaviour behaviour, program.behaviour(rank));
    found.push_back({rank, std::move(behaviour)});
  }
  return found;
}

// The peers of the first node's ranks, which are on other nodes: as those see it.
bool join_peers(const NodesAround& around, Fold& fold) {
  std::vector<PeerNumbers> numbers;
  for (const FoldedRank& one : fold) numbers.emplace_back(one.behaviour.peers);
  for (FoldedRank& one : fold) {
    one.peers.clear();
    for (const int peer : one.behaviour.peers) {
      const int place = peer % around.ranks_per_node;
      const int self = around.as_seen_from(peer / around.ranks_per_node, one.rank);
      const int number = numbers[static_cast<std::size_t>(place)].of(self);
      if (number < 0) return false;
      one.peers.push_back({place, number});
    }
  }
  return true;
}

// Whether looking at all ranks is affordable: by the first and the last one, and one between.
Result<bool> all_are_few(ClusterProgram& program) {
  const int ranks = program.cluster().ranks();
  std::size_t most = 0;
  for (const int rank : {0, ranks / 2, ranks - 1}) {
    TUTTI_ASSIGN(const Behaviour behaviour, program.behaviour(rank));
    most = std::max(most, program.steps_of(behaviour));
  }
  return most * static_cast<std::size_t>(ranks) <= kMostStepsLookedAt;
}

Result<std::optional<Fold>> affordable(ClusterProgram& program) {
  TUTTI_ASSIGN(const bool are_few, all_are_few(program));
  if (!are_few) return folded_to_a_node(program);
  TUTTI_ASSIGN(Fold fold, folded_by_classes(program));
  if (chunks_of(program, fold) > kMostSimulatedChunks) return std::optional<Fold>();
  return std::optional(std::move(fold));
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

Result<std::optional<Fold>> folded_to_a_node(ClusterProgram& program) {
  const ClusterModel& cluster = program.cluster();
  if (cluster.nodes < 2) return std::optional<Fold>();
  Fold fold;
  for (int rank = 0; rank < cluster.ranks_per_node; ++rank) {
    TUTTI_ASSIGN(Behaviour behaviour, program.behaviour(rank));
    fold.push_back({rank, std::move(behaviour), {}});
  }
  TUTTI_ASSIGN(const std::vector<SampledRank> sample, sampled(program));
  for (const auto by : {NodesAround::By::kDistance, NodesAround::By::kBits}) {
    const NodesAround around{by, cluster.nodes, cluster.ranks_per_node};
    if (by == NodesAround::By::kBits && !std::has_single_bit(static_cast<unsigned>(around.nodes))) {
      continue;
    }
    const bool alike = std::all_of(sample.begin(), sample.end(), [&](const SampledRank& one) {
      const auto place = static_cast<std::size_t>(one.rank % around.ranks_per_node);
      return around.alike(fold[place], one.rank, one.behaviour);
    });
    if (alike && join_peers(around, fold)) return std::optional(std::move(fold));
  }
  return std::optional<Fold>();
}

std::size_t chunks_of(const ClusterProgram& program, const Fold& fold) {
  std::size_t chunks = 0;
  for (const FoldedRank& one : fold) {
    std::size_t most = 0;
    for (const int index : one.behaviour.programs) {
      if (index >= 0) most = std::max(most, program.program(index).step_of.size());
    }
    chunks += most;
  }
  return chunks;
}

Result<Fold> fold_of(const SimulatedOperation& operation, const ClusterModel& cluster,
                     std::unique_ptr<ClusterProgram>& program) {
  if (cluster.processor.shared > 0) return unfolded(*program);
  TUTTI_ASSIGN(std::optional<Fold> exact, affordable(*program));
  if (exact) return *std::move(exact);
  TUTTI_ASSIGN(program, ClusterProgram::make(operation, cluster, ClusterProgram::Form::kAlike));
  TUTTI_ASSIGN(std::optional<Fold> alike, affordable(*program));
  if (alike) return *std::move(alike);
  return Status(StatusCode::kUnsupported,
                fmt::format("{} ranks do not behave alike, and have too long programs to simulate "
                            "each of them: simulate fewer ranks, or larger chunks",
                            cluster.ranks()));
}

}  // namespace tutti::model
