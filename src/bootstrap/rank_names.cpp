#include "bootstrap/rank_names.hpp"

#include <fmt/format.h>

#include "bootstrap/failure_notice.hpp"

namespace tutti {

RankNames RankNames::split(const std::vector<int>& chosen) const {
  RankNames names;
  for (const int rank : chosen) names.world_.push_back(world(rank));
  names.parent_ = std::make_shared<const RankNames>(*this);
  names.chosen_ = chosen;
  return names;
}

int RankNames::world(int rank) const {
  const bool known = rank >= 0 && static_cast<std::size_t>(rank) < world_.size();
  return known ? world_[static_cast<std::size_t>(rank)] : rank;
}

std::string RankNames::of(int rank) const { return of(std::vector{rank}); }

std::string RankNames::of(const std::vector<int>& ranks) const {
  if (world_.empty()) return rank_list(ranks);
  std::vector<int> others;  // the same ranks in the numbers of another group
  for (const int rank : ranks) {
    const bool known = rank >= 0 && static_cast<std::size_t>(rank) < world_.size();
    if (!known) return rank_list(ranks);
    others.push_back(parent_ ? chosen_[static_cast<std::size_t>(rank)] : world(rank));
  }
  if (parent_) return parent_->of(others);
  return fmt::format("world {} ({} of the split group)", rank_list(others), rank_list(ranks));
}

}  // namespace tutti
