// Runs cells by the groups that they need: one group after the other, each in a process of its own.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/check.hpp"
#include "support/group.hpp"

namespace tutti::test {

inline constexpr int kSkipped = 77;  // ctest's SKIP_RETURN_CODE

// What there is of kinds and ranks on this machine, of those that were asked for.
template <class Space>
void keep_what_is_there(Space& space, const std::vector<std::string>& kinds,
                        const std::vector<int>& ranks) {
  if (space.backend == Backend::kHost) space.ranks.push_back(16);
  if (!ranks.empty()) space.ranks = ranks;
  if (space.backend == Backend::kCuda) {
    std::erase_if(space.ranks, [](int number) { return !has_gpus(number); });
  }
  if (kinds.empty()) return;
  std::erase_if(space.kinds, [&](RankKind kind) {
    return std::find(kinds.begin(), kinds.end(), to_string(kind)) == kinds.end();
  });
}

// run(rank, cells) on every rank of a group. The exit code.
template <class Cell, class Run>
int run_grouped(Backend backend, const std::vector<Cell>& all, const Run& run) {
  std::map<std::pair<RankKind, int>, std::vector<Cell>> groups;
  for (const Cell& cell : all) groups[{cell.kind, cell.ranks}].push_back(cell);
  int failed = 0;
  for (const auto& [key, cells] : groups) {
    const GroupSpec spec{.backend = backend,
                         .kind = key.first,
                         .ranks = key.second,
                         .limit = std::chrono::seconds(600)};
    const std::string wrong = run_isolated(
        [&] {
          const std::string text = run_group(spec, [&](Rank& rank) { run(rank, cells); });
          if (!text.empty()) throw Failure(text);
        },
        spec.limit);
    failed += wrong.empty() ? 0 : 1;
    fmt::print("{} {} ranks as {}: {} cells\n{}", wrong.empty() ? "passed" : "FAILED", key.second,
               to_string(key.first), cells.size(), wrong);
    std::fflush(stdout);
  }
  fmt::print("{} passed, {} failed\n", static_cast<int>(groups.size()) - failed, failed);
  return failed > 0 || groups.empty() ? 1 : 0;
}

}  // namespace tutti::test
