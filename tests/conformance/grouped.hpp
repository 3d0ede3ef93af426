// Programs that run selections of cells, by the groups that these need: one group after the other,
// each in a process of its own.
#pragma once

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.hpp"
#include "conformance/nodes.hpp"
#include "group/communicator_impl.hpp"
#include "support/check.hpp"
#include "support/group.hpp"
#include "support/workbench.hpp"

namespace tutti::test {

inline constexpr int kSkipped = 77;  // ctest's SKIP_RETURN_CODE

struct SelectionOptions {
  std::string backend = "host";
  std::vector<std::string> kinds, rows;
  std::vector<int> ranks;
  std::uint64_t seed = 1;
  int rounds = 2;
  bool tickets = false;  // also on the executor of the tests' own
  std::string topology;  // not empty: over the network
};

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
    const GroupSpec spec{
        .backend = backend, .kind = key.first, .ranks = key.second, .limit = std::chrono::hours(1)};
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

// Those that are named and have a body for the backend; where none is named all of them, and none:
// what is chosen.
inline std::vector<std::string_view> rows_to_run(Collective collective, Backend backend,
                                                 const SelectionOptions& options) {
  std::vector<std::string_view> ids;
  for (const std::string& name : options.rows)
    ids.push_back(take(find_algorithm(collective, name))->id);
  if (!ids.empty()) return ids;
  ids.push_back("");
  for (const Algorithm& row : rows_of(collective)) {
    const bool has_body = backend == Backend::kCuda || row.host != nullptr;
    if (options.topology.empty() ? has_body : row.network != nullptr) ids.push_back(row.id);
  }
  return ids;
}

// run(rank, cells) for the selections of a space, each with inputs of its own. The exit code.
template <class Space, class Run>
int run_selections(Space space, Collective collective, const SelectionOptions& options,
                   const Run& run) {
  space.backend = take(parse_backend(options.backend));
  space.algorithms = rows_to_run(collective, space.backend, options);
  keep_what_is_there(space, options.kinds, options.ranks);
  if (space.ranks.empty()) {
    fmt::print("skipped: not enough GPUs\n0 passed, 0 failed\n");
    return kSkipped;
  }
  decltype(space.selection()) cells;
  for (int round = 0; round < options.rounds; ++round) {
    space.seed = options.seed + static_cast<std::uint64_t>(round);
    const auto some = space.selection();
    cells.insert(cells.end(), some.begin(), some.end());
  }
  if (!options.topology.empty()) keep_plain(cells);
  return run_grouped(space.backend, cells, run);
}

// Which windows of NCCL's a row needs, if any.
inline unsigned windows_of(Collective collective, std::string_view algorithm) {
  const auto row = find_algorithm(collective, algorithm);
  return row.is_ok() ? (*row)->needs & kNeedsAnyWindows : 0;
}

// Made here: NCCL's communicators cannot be made inside a capture. They may not be there.
template <class Cell>
void prepare_nccl_for(Communicator& group, Collective collective, const std::vector<Cell>& cells) {
  (void)group.prepare_nccl();
  unsigned windows = kNeedsNothing;
  for (const Cell& cell : cells) windows |= windows_of(collective, cell.algorithm);
  (void)group.impl().prepare_executor(kNcclExecutor, windows);
}

// Whether NCCL's windows hold what a cell's buffers lie in, as they lie there.
inline bool windows_hold(BufferKind kind, const void* input, const void* output) {
  const auto aligned = [](const void* at) {
    return reinterpret_cast<std::uintptr_t>(at) % 16 == 0;
  };
  return kind == BufferKind::kSymmetric && aligned(input) && aligned(output);
}

// Cells of rows that need windows: into memory that those hold, as they hold it, or few would run.
template <class Cell>
void fit_windows(Collective collective, Cell& cell) {
  if (windows_of(collective, cell.algorithm) == kNeedsNothing) return;
  cell.buffers = BufferKind::kSymmetric;
  if constexpr (requires { cell.offset; }) {
    cell.offset = 0;
  } else {
    cell.input_offset = cell.output_offset = 0;
  }
  cell.count = std::max(cell.count - cell.count % 16, std::size_t{16});
}

// run(cell) for those that are not refused, of which there must be more than of others.
template <class Cell, class IsRefused, class Run>
void run_possible(const std::vector<Cell>& cells, const IsRefused& is_refused, const Run& run) {
  std::size_t number = 0;
  for (const Cell& cell : cells) {
    if (is_refused(cell)) continue;
    try {
      run(cell);
    } catch (const std::exception& failure) {
      fail(fmt::format("{}: {}", cell.to_string(), failure.what()));
    }
    ++number;
  }
  require(2 * number > cells.size(), fmt::format("only {} of {} cells ran", number, cells.size()));
}

// What run(options) returns, as such a program's main(). add_options(app) adds what only this one
// has.
inline int main_of_selections(
    int argc, char** argv, const std::string& what,
    const std::function<int(const SelectionOptions&)>& run,
    const std::function<void(CLI::App&, SelectionOptions&)>& add_options = {}) {
  SelectionOptions options;
  CLI::App app(what);
  app.add_option("--backend", options.backend, "host or cuda");
  app.add_option("--kind", options.kinds, "threads,processes")->delimiter(',');
  app.add_option("--ranks", options.ranks, "numbers of ranks")->delimiter(',');
  app.add_option("--rows", options.rows, "names of rows")->delimiter(',');
  app.add_option("--seed", options.seed, "of the selection and the inputs");
  app.add_option("--rounds", options.rounds, "selections, each with inputs of its own");
  app.add_option("--topology", options.topology, kTopologyHelp);
  if (add_options) add_options(app, options);
  CLI11_PARSE(app, argc, argv);
  try {
    const std::string why = options.topology.empty() ? "" : become_nodes(options.topology);
    if (!why.empty()) {
      fmt::print("skipped: {}\n0 passed, 0 failed\n", why);
      return kSkipped;
    }
    return run(options);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "{}\n", failure.what());
    return 2;
  }
}

}  // namespace tutti::test
