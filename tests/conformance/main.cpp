// tutti_conformance: every row of the catalogue against an independent reference, bit for bit.
// Without restrictions it runs a selection in which every pair of values of any two dimensions
// occurs; with --full, everything. Each option restricts one dimension.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <tuple>

#include "algorithms/catalogue.hpp"
#include "conformance/huge.hpp"
#include "conformance/nodes.hpp"
#include "conformance/random_groups.hpp"
#include "conformance/session.hpp"
#include "conformance/soak.hpp"
#include "support/check.hpp"
#include "support/device.hpp"
#include "support/run_ranks.hpp"
#include "tickets/ticket_executor.hpp"

namespace tutti::test {
namespace {

constexpr int kSkipped = 77;  // ctest's SKIP_RETURN_CODE

struct Options {
  std::string backend = "host";
  std::vector<std::string> kinds, rows, buffers, modes, dtypes, ops, inputs, in_place;
  std::vector<int> ranks, offsets;
  std::vector<std::size_t> counts;
  std::size_t max_count = Space::kMillion;
  std::uint64_t seed = 1;
  bool full = false, list = false, huge = false;
  std::size_t cells = 0;  // of --full, at random; 0: all
  bool tickets = false;
  std::string topology;
  int silence_s = 240, rounds = 5, soak = 0, groups = 0;
};

void declare(CLI::App& app, Options& options) {
  app.add_option("--backend", options.backend, "host or cuda");
  const auto list = [&](const char* name, auto& values, const char* text) {
    app.add_option(name, values, text)->delimiter(',');
  };
  list("--kind", options.kinds, "threads,processes");
  list("--ranks", options.ranks, "1,2,3,4,5,8 and on the host 16");
  list("--rows", options.rows, "ids of the catalogue, or auto");
  list("--buffers", options.buffers, "symmetric,registered,registered_vmm,plain");
  list("--mode", options.modes, "eager,graph,graph_registered");
  list("--dtype", options.dtypes, "element types");
  list("--op", options.ops, "reductions");
  list("--inputs", options.inputs, "exact,random,special");
  list("--count", options.counts, "elements");
  list("--offset", options.offsets, "elements from a 256-byte boundary");
  list("--in-place", options.in_place, "yes,no");
  app.add_option("--max-count", options.max_count, "leaves out counts above");
  app.add_option("--seed", options.seed, "of the selection and the inputs")
      ->envname("CONFORMANCE_SEED");
  app.add_option("--rounds", options.rounds, "selections, each with inputs of its own");
  app.add_flag("--full", options.full, "every cell, not a selection");
  app.add_option("--cells", options.cells, "of --full, only so many, drawn by --seed");
  app.add_option("--soak", options.soak,
                 "instead: one random series of so many operations for each group");
  app.add_option("--groups", options.groups, "instead: so many random groups of calls");
  app.add_flag("--huge", options.huge, "instead: more than 2^32 elements, with each row");
  app.add_flag("--tickets", options.tickets, "also on the executor of the tests' own");
  app.add_option("--topology", options.topology, kTopologyHelp);
  app.add_flag("--list", options.list, "print the cells and run nothing");
  app.add_option("--silence", options.silence_s,
                 "seconds without a result before a group is ended");
}

// Keeps of `all` what `names` names; everything if it names nothing.
template <class T, class ToName>
void restrict(std::vector<T>& all, const std::vector<std::string>& names, ToName to_name) {
  if (names.empty()) return;
  std::vector<T> kept;
  for (const std::string& name : names) {
    bool known = false;
    for (const T& value : all) {
      if (to_name(value) != name) continue;
      kept.push_back(value);
      known = true;
    }
    if (!known) fail(fmt::format("'{}' is not a value of this option", name));
  }
  all = std::move(kept);
}

std::vector<std::string_view> all_algorithms(Backend backend, bool over_network) {
  std::vector<std::string_view> ids = {""};
  for (const Algorithm& row : rows_of(Collective::kAllReduce)) {
    const int most = backend == Backend::kHost ? row.max_ranks_host : row.max_ranks_cuda;
    if (most > 0 && (row.network != nullptr || !over_network)) ids.push_back(row.id);
  }
  return ids;
}

Space space_from(const Options& options) {
  Space space;
  space.backend = take(parse_backend(options.backend));
  space.large_for_all_dtypes = options.full;
  space.seed = options.seed;
  space.algorithms = all_algorithms(space.backend, !options.topology.empty());
  space.over_network = !options.topology.empty();
  if (space.over_network) space.buffers = {BufferKind::kPlain};
  if (space.backend == Backend::kHost) space.ranks.push_back(16);
  const auto name = [](auto value) { return to_string(value); };
  restrict(space.kinds, options.kinds, name);
  restrict(space.algorithms, options.rows,
           [](std::string_view id) { return id.empty() ? "auto" : id; });
  restrict(space.buffers, options.buffers, name);
  restrict(space.modes, options.modes, name);
  restrict(space.dtypes, options.dtypes, name);
  restrict(space.ops, options.ops, name);
  restrict(space.inputs, options.inputs, name);
  restrict(space.in_place, options.in_place, [](bool value) { return value ? "yes" : "no"; });
  if (!options.ranks.empty()) space.ranks = options.ranks;
  if (!options.counts.empty()) space.counts = options.counts;
  if (!options.offsets.empty()) space.offsets = options.offsets;
  std::erase_if(space.counts, [&](std::size_t count) { return count > options.max_count; });
  return space;
}

// Several coverings: each puts other values side by side.
std::vector<Cell> selections(Space space, const Options& options) {
  std::vector<Cell> cells;
  for (int round = 0; round < options.rounds; ++round) {
    const std::vector<Cell> more = space.selection();
    cells.insert(cells.end(), more.begin(), more.end());
    ++space.seed;
  }
  return cells;
}

// All cells, or as many of them as are asked for.
std::vector<Cell> drawn(const Space& space, const Options& options) {
  std::vector<Cell> cells = space.everything();
  if (options.cells == 0 || options.cells >= cells.size()) return cells;
  std::shuffle(cells.begin(), cells.end(), std::mt19937_64(options.seed));
  cells.resize(options.cells);
  cells.shrink_to_fit();
  return cells;
}

// Cells of one group together, and within it those that share their inputs, largest first.
std::vector<std::vector<Cell>> sessions_of(std::vector<Cell> cells) {
  std::map<std::pair<RankKind, int>, std::vector<Cell>> groups;
  for (Cell& cell : cells) groups[{cell.kind, cell.ranks}].push_back(std::move(cell));
  std::vector<std::vector<Cell>> sessions;
  for (auto& [key, group] : groups) {
    std::stable_sort(group.begin(), group.end(), [](const Cell& a, const Cell& b) {
      return std::tuple(a.dtype, a.op, a.inputs, a.seed, b.count) <
             std::tuple(b.dtype, b.op, b.inputs, b.seed, a.count);
    });
    sessions.push_back(std::move(group));
  }
  return sessions;
}

struct Totals {
  int passed = 0, failed = 0, skipped = 0;
  std::map<std::string, int> reasons;
};

void run_and_print(const Space& space, const std::vector<Cell>& cells, const Options& options,
                   Totals& totals) {
  const auto start = std::chrono::steady_clock::now();
  const auto outcomes = run_session(space.backend, cells, std::chrono::seconds(options.silence_s));
  int failed = 0;
  for (std::size_t k = 0; k < cells.size(); ++k) {
    const CellOutcome& outcome = outcomes[k];
    totals.passed += outcome.verdict == Verdict::kPassed;
    totals.skipped += outcome.verdict == Verdict::kSkipped;
    if (outcome.verdict == Verdict::kSkipped) ++totals.reasons[outcome.text];
    if (outcome.verdict != Verdict::kFailed) continue;
    ++failed;
    fmt::print("FAILED {}\n   repeat: tutti_conformance {}\n", outcome.text,
               to_arguments(cells[k], space.backend));
  }
  totals.failed += failed;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print("{} ranks as {}: {} cells, {} failed, {:.1f} s\n", cells.front().ranks,
             to_string(cells.front().kind), cells.size(), failed, took.count());
  std::fflush(stdout);
}

// One run of each kind and number of ranks, as passed or failed; each in a process of its own,
// since one that has used CUDA cannot fork ranks any more.
template <class Run>
int run_groups(const Space& space, std::string_view what, Run&& run) {
  int passed = 0, failed = 0;
  for (const RankKind kind : space.kinds) {
    for (const int ranks : space.ranks) {
      const GroupSpec spec{
          .backend = space.backend, .kind = kind, .ranks = ranks, .limit = std::chrono::hours(2)};
      const std::string wrong = run_isolated(
          [&] {
            if (const std::string text = run(spec); !text.empty()) throw Failure(text);
          },
          spec.limit);
      ++(wrong.empty() ? passed : failed);
      fmt::print("{} {} ranks as {}, {}\n{}", wrong.empty() ? "passed" : "FAILED", ranks,
                 to_string(kind), what, wrong);
      std::fflush(stdout);
    }
  }
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed > 0 || passed == 0 ? 1 : 0;
}

int soak(const Space& space, const Options& options) {
  return run_groups(space, fmt::format("{} operations", options.soak), [&](const GroupSpec& spec) {
    return run_soak(spec, options.soak, static_cast<unsigned>(options.seed));
  });
}

int groups_of_calls(const Space& space, const Options& options) {
  return run_groups(
      space, fmt::format("{} groups of calls", options.groups), [&](const GroupSpec& spec) {
        return run_group(
            spec, [&](Rank& rank) { run_random_groups(rank, options.groups, options.seed); });
      });
}

int huge(const Space& space) {
  return run_groups(space, fmt::format("{} elements", kHugeCount), [&](const GroupSpec& spec) {
    std::string wrong;
    for (const std::string_view algorithm : space.algorithms) wrong += run_huge(spec, algorithm);
    return wrong;
  });
}

std::string why_no_backend(const Space& space) {
  if (space.backend == Backend::kHost) return {};
  int most = 1;
  for (const int ranks : space.ranks) most = std::max(most, ranks);
  return run_isolated([&] { require(why_no_gpus(1).empty(), why_no_gpus(1)); }, kPatience);
}

int run(const Options& options) {
  if (options.tickets) register_ticket_executor();
  if (!options.topology.empty()) {
    if (const std::string why = become_nodes(options.topology); !why.empty()) {
      fmt::print("skipped: {}\n0 passed, 0 failed\n", why);
      return kSkipped;
    }
  }
  Space space = space_from(options);
  if (const std::string why = why_no_backend(space); !why.empty()) {
    fmt::print("skipped: {}\n0 passed, 0 failed\n", why);
    return kSkipped;
  }
  if (space.backend == Backend::kCuda) {
    std::erase_if(space.ranks, [](int ranks) { return !has_gpus(ranks); });
  }
  if (options.soak > 0) return soak(space, options);
  if (options.groups > 0) return groups_of_calls(space, options);
  if (options.huge) return huge(space);
  const std::vector<Cell> cells = options.full ? drawn(space, options) : selections(space, options);
  fmt::print("seed {}: {} cells ({})\n", options.seed, cells.size(),
             options.full ? "of the whole product" : "every pair of values occurs in each round");
  Totals totals;
  for (const auto& session : sessions_of(cells)) {
    if (!options.list) run_and_print(space, session, options, totals);
    for (const Cell& cell : session) {
      if (options.list) fmt::print("{}\n", to_arguments(cell, space.backend));
    }
  }
  for (const auto& [reason, count] : totals.reasons) {
    fmt::print("skipped {}: {}\n", count, reason);
  }
  fmt::print("{} passed, {} failed\n", totals.passed, totals.failed);
  return totals.failed > 0 || (totals.passed == 0 && !options.list) ? 1 : 0;
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  // Little staging, so that messages take several passes through it.
  ::setenv("TUTTI_STAGING_BYTES", "256K", 0);
  ::setenv("TUTTI_DEBUG", "OFF", 0);
  tutti::test::Options options;
  CLI::App app("Every algorithm against an independent reference, bit for bit");
  tutti::test::declare(app, options);
  CLI11_PARSE(app, argc, argv);
  try {
    return tutti::test::run(options);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "{}\n", failure.what());
    return 2;
  }
}
