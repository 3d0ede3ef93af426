#include "bootstrap/rank_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tutti {

namespace {

// "rank 3", "ranks 1, 2 and 5"; each rank with its host if there are any.
std::string rank_list(const std::vector<int>& ranks, const std::vector<std::string>& hosts = {}) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const char* const separator = i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ";
    text += fmt::format("{}{}", separator, ranks[i]);
    if (!hosts.empty()) text += fmt::format(" (host {})", hosts[i]);
  }
  return text;
}

template <class T>
std::vector<T> chosen_of(const std::vector<T>& all, const std::vector<int>& ranks) {
  std::vector<T> chosen;
  chosen.reserve(ranks.size());
  for (const int rank : ranks) chosen.push_back(all[static_cast<std::size_t>(rank)]);
  return chosen;
}

template <class T>
bool all_same(const std::vector<T>& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](const T& value) { return value == values.front(); });
}

}  // namespace

RankNames RankNames::split(const std::vector<int>& chosen) const {
  RankNames names;
  for (const int rank : chosen) names.world_.push_back(world(rank));
  names.parent_ = std::make_shared<const RankNames>(*this);
  names.chosen_ = chosen;
  if (!hosts_.empty()) names.hosts_ = chosen_of(hosts_, chosen);
  return names;
}

void RankNames::set_hosts(std::vector<std::string> hosts) {
  if (!all_same(hosts)) hosts_ = std::move(hosts);
}

int RankNames::world(int rank) const {
  const bool known = rank >= 0 && static_cast<std::size_t>(rank) < world_.size();
  return known ? world_[static_cast<std::size_t>(rank)] : rank;
}

std::string RankNames::of(int rank) const { return of(std::vector{rank}); }

std::string RankNames::of(const std::vector<int>& ranks) const {
  const std::size_t known = std::max(world_.size(), hosts_.size());
  const bool all_known = std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    return rank >= 0 && static_cast<std::size_t>(rank) < known;
  });
  if (!all_known) return rank_list(ranks);
  if (parent_) return parent_->of(chosen_of(chosen_, ranks));
  std::vector<std::string> hosts;
  if (!hosts_.empty()) hosts = chosen_of(hosts_, ranks);
  std::string common;  // of all these ranks, where it is one
  if (!hosts.empty() && all_same(hosts)) {
    common = "host " + hosts.front();
    hosts.clear();
  }
  if (world_.empty()) {
    return common.empty() ? rank_list(ranks, hosts)
                          : fmt::format("{} ({})", rank_list(ranks), common);
  }
  return fmt::format("world {} ({} of the split group{}{})",
                     rank_list(chosen_of(world_, ranks), hosts), rank_list(ranks),
                     common.empty() ? "" : ", ", common);
}

}  // namespace tutti
