// Classes of ranks by refinement. At first a class are those with the same program; then a class is
// split as long as its members have peers of different classes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "base/try.hpp"
#include "model/fold.hpp"
#include "model/peer_numbers.hpp"

namespace tutti::model {
namespace {

// What is classed are cells: a rank, or the ranks of a node where they share its rails.
class Classes {
 public:
  Classes(const Fold& all, int ranks_in_a_cell)
      : all_(all),
        in_a_cell_(static_cast<std::size_t>(ranks_in_a_cell)),
        class_of_(all.size() / in_a_cell_),
        is_queued_(class_of_.size()) {
    std::map<std::vector<int>, std::size_t> found;
    for (std::size_t cell = 0; cell < class_of_.size(); ++cell) {
      std::vector<int> programs;
      for_each_rank(cell, [&](const FoldedRank& one) {
        programs.insert(programs.end(), one.behaviour.programs.begin(),
                        one.behaviour.programs.end());
      });
      const auto [known, is_new] = found.emplace(std::move(programs), sizes_.size());
      if (is_new) sizes_.push_back(0);
      class_of_[cell] = known->second;
      ++sizes_[known->second];
      queue(cell);
    }
  }

  void refine() {
    while (!queued_.empty()) split(std::exchange(queued_, {}));
  }

  // The first cell of each class stands for it.
  Fold fold() const {
    constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    std::vector<std::size_t> first_rank(sizes_.size(), kNone);  // by class, in the fold
    Fold fold;
    for (std::size_t cell = 0; cell < class_of_.size(); ++cell) {
      if (first_rank[class_of_[cell]] != kNone) continue;
      first_rank[class_of_[cell]] = fold.size();
      for_each_rank(cell, [&](const FoldedRank& one) { fold.push_back(one); });
    }
    for (FoldedRank& one : fold) {
      for (FoldedPeer& peer : one.peers) {
        const auto rank = static_cast<std::size_t>(peer.rank);
        peer.rank = static_cast<int>(first_rank[class_of_[rank / in_a_cell_]] + rank % in_a_cell_);
      }
    }
    return fold;
  }

 private:
  struct Signed {
    std::size_t class_was = 0;
    std::uint64_t signature = 0;
    std::size_t cell = 0;
    bool is_like(const Signed& other) const {
      return class_was == other.class_was && signature == other.signature;
    }
  };

  template <class Visit>
  void for_each_rank(std::size_t cell, const Visit& visit) const {
    for (std::size_t k = 0; k < in_a_cell_; ++k) visit(all_[cell * in_a_cell_ + k]);
  }
  void queue(std::size_t cell) {
    if (!is_queued_[cell]) queued_.push_back(cell);
    is_queued_[cell] = true;
  }

  std::uint64_t signature(std::size_t cell) const {
    WordHash hash;
    for_each_rank(cell, [&](const FoldedRank& one) {
      for (const FoldedPeer& peer : one.peers) {
        const auto rank = static_cast<std::size_t>(peer.rank);
        hash.add(class_of_[rank / in_a_cell_])
            .add(rank % in_a_cell_)
            .add(static_cast<std::uint64_t>(peer.number));
      }
    });
    return hash.value();
  }

  // Splits the classes of cells that have peers whose class has changed. Cells of these classes
  // that have none keep their number; new ones are numbers that those cannot have among their
  // peers, so they differ from all that are given a new one.
  void split(const std::vector<std::size_t>& cells) {
    std::vector<Signed> found;
    found.reserve(cells.size());
    for (const std::size_t cell : cells) {
      is_queued_[cell] = false;
      found.push_back({class_of_[cell], signature(cell), cell});
    }
    std::sort(found.begin(), found.end(), [](const Signed& a, const Signed& b) {
      return std::tie(a.class_was, a.signature, a.cell) <
             std::tie(b.class_was, b.signature, b.cell);
    });
    for (std::size_t begin = 0; begin < found.size();) {
      std::size_t end = begin;
      while (end < found.size() && found[end].is_like(found[begin])) ++end;
      if (end - begin < sizes_[found[begin].class_was]) renumber(found, begin, end);
      begin = end;
    }
  }

  void renumber(const std::vector<Signed>& found, std::size_t begin, std::size_t end) {
    sizes_[found[begin].class_was] -= end - begin;
    sizes_.push_back(end - begin);
    for (std::size_t k = begin; k < end; ++k) {
      class_of_[found[k].cell] = sizes_.size() - 1;
      for_each_rank(found[k].cell, [&](const FoldedRank& one) {
        for (const FoldedPeer& peer : one.peers) {
          queue(static_cast<std::size_t>(peer.rank) / in_a_cell_);
        }
      });
    }
  }

  const Fold& all_;
  const std::size_t in_a_cell_;
  std::vector<std::size_t> class_of_;  // by cell
  std::vector<std::size_t> sizes_;     // by class
  std::vector<bool> is_queued_;
  std::vector<std::size_t> queued_;
};

}  // namespace

Result<Fold> folded_by_classes(ClusterProgram& program) {
  TUTTI_ASSIGN(const Fold all, unfolded(program));
  const ClusterModel& cluster = program.cluster();
  Classes classes(all, cluster.rails.empty() ? 1 : cluster.ranks_per_node);
  classes.refine();
  return classes.fold();
}

}  // namespace tutti::model
