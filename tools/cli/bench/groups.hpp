// The groups of a benchmark of collectives or one-sided operations, one after the other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/outcome.hpp"
#include "bench/rank.hpp"

namespace tutti::cli {

// What the ranks of a group do, and what its rows say.
struct GroupWork {
  std::function<std::vector<std::string>(int ranks)> words;  // as GroupJob has them
  RankWork work;
  std::function<void(Row&)> describe;  // may be empty
};

// Tells the outcome each row as soon as it is measured. The first group that fails is the last.
void measure_groups(const BenchOptions& options, const GroupWork& work, Outcome& outcome);

}  // namespace tutti::cli
