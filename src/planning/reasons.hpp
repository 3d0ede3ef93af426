// Algorithms that cannot run, by the reason: between nodes a dozen of them have the same one.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

class Reasons {
 public:
  void add(std::string_view algorithm, std::string_view reason) {
    const auto known = std::ranges::find(groups_, reason, &Group::reason);
    if (known != groups_.end()) {
      known->algorithms.emplace_back(algorithm);
    } else {
      groups_.push_back({std::string(reason), {std::string(algorithm)}});
    }
  }

  // "one_shot, two_shot and 9 more: needs access to the memory of all ranks": one for each reason,
  // in the order in which they were added.
  std::vector<std::string> lines() const {
    constexpr std::size_t kMostNames = 3;
    std::vector<std::string> lines;
    for (const auto& [reason, algorithms] : groups_) {
      const bool all = algorithms.size() <= kMostNames;
      const std::span<const std::string> named(algorithms.data(),
                                               all ? algorithms.size() : kMostNames - 1);
      std::string names = fmt::format("{}", fmt::join(named, ", "));
      if (!all) names += fmt::format(" and {} more", algorithms.size() - named.size());
      lines.push_back(fmt::format("{}: {}", names, reason));
    }
    return lines;
  }

 private:
  struct Group {
    std::string reason;
    std::vector<std::string> algorithms;
  };
  std::vector<Group> groups_;
};

}  // namespace tutti
