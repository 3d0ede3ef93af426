// Which ranks of a cluster are simulated, and who stands for whom.
//
// Ranks whose programs are alike, whose peers are alike in turn, and whose links are shared with
// ranks that are alike, have the same times. One of each such class is simulated. What it sends to
// a rank arrives at the one that stands for that rank, as from the one that stands for the sender.
#pragma once

#include <cstddef>
#include <memory>
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

// One rank of each class, or one node where ranks of a node share rails. Looks at all ranks.
Result<Fold> folded_by_classes(ClusterProgram& program);

// The first node, if the ranks at each of its places do what those at that place of any other node
// do: with peers whose nodes lie as far from their own, or differ from it in the same bits. Looks
// at some ranks alone: the first and the last ones, and others at random. Nothing: they differ.
Result<std::optional<Fold>> folded_to_a_node(ClusterProgram& program);

// Chunks that the ranks of a fold have in one partition, together.
std::size_t chunks_of(const ClusterProgram& program, const Fold& fold);

// The smallest fold that is found. `program` is replaced by one of the form kAlike where that one
// alone can be folded. kUnsupported: there is none that could be simulated.
Result<Fold> fold_of(const SimulatedOperation& operation, const ClusterModel& cluster,
                     std::unique_ptr<ClusterProgram>& program);

}  // namespace tutti::model
