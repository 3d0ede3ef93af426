// Which ranks of a cluster are simulated, and who stands for whom.
//
// Ranks whose programs are alike, whose peers are alike in turn, and whose links are shared with
// ranks that are alike, have the same times. One of each such class is simulated. What it sends to
// a rank arrives at the one that stands for that rank, as from the one that stands for the sender.
#pragma once

#include <optional>
#include <vector>

#include "model/cluster_program.hpp"
#include "tutti/status.hpp"

namespace tutti::model {

// A peer, as a simulated rank has it: who stands for it, and which number the peer's own list of
// peers has for this rank.
struct FoldedPeer {
  int rank = 0;  // among the simulated ones
  int number = 0;
};

struct FoldedRank {
  int rank = 0;  // of the cluster
  Behaviour behaviour;
  std::vector<FoldedPeer> peers;  // by number
};

using Fold = std::vector<FoldedRank>;

// All ranks, each for itself.
Result<Fold> unfolded(ClusterProgram& program);

}  // namespace tutti::model
