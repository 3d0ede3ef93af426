// How texts name the ranks of a group. Ranks of the first group are "rank 3". Those of a group that
// came of split() have two numbers, and a text gives both: "world rank 3 (rank 1 of the split
// group)"; the world is the first group, however often it was split. While split() itself is under
// way nobody knows the new numbers yet, so its texts have those of the group that is split.
//
// Where the first group spans hosts of different names, a text also names the host: "rank 3 (host
// b)", "ranks 1 and 2 (host b)", "ranks 0 (host a) and 2 (host b)", "world rank 3 (rank 1 of the
// split group, host b)".
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tutti {

class RankNames {
 public:
  // Of the first group.
  RankNames() = default;

  // Of a group that is being split from this one; element r of `chosen` is its rank r, here.
  RankNames split(const std::vector<int>& chosen) const;
  // The names of the ranks' hosts, by rank. Not told where all are the same.
  void set_hosts(std::vector<std::string> hosts);
  // The split is complete.
  void found() { parent_.reset(); }

  std::string of(int rank) const;
  std::string of(std::size_t rank) const { return of(static_cast<int>(rank)); }
  // "ranks 1, 2 and 5".
  std::string of(const std::vector<int>& ranks) const;
  // In the first group.
  int world(int rank) const;

 private:
  std::vector<int> world_;          // by rank; empty: these are the world's
  std::vector<std::string> hosts_;  // by rank; empty: not told
  // While the split is under way.
  std::shared_ptr<const RankNames> parent_;
  std::vector<int> chosen_;
};

}  // namespace tutti
