// tutti_conformance_rms_norm: every row of all_reduce_residual_rms_norm against an independent
// reference, bit for bit, which itself is held against float64. In each round every pair of values
// of any two dimensions occurs.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <map>

#include "algorithms/catalogue.hpp"
#include "conformance/grouped.hpp"
#include "conformance/rms_norm/bench.hpp"
#include "support/cuda_graph.hpp"

namespace tutti::test {
namespace {

constexpr std::size_t kMostBytes = 300'000 * 4 + 64;

struct Options {
  std::string backend = "host";
  std::vector<std::string> kinds, rows;
  std::vector<int> ranks;
  std::uint64_t seed = 1;
  int rounds = 2;
};

void run_once(Rank& rank, NormBench& bench, const NormCell& cell, const OwnedStream& stream) {
  const NormAnswer answer = norm_answer(cell.spec(), rank.number());
  require(cell.inputs == InputKind::kSpecial || answer.error <= kNormError,
          fmt::format("{} from float64", answer.error));
  const AllReduceResidualRmsNorm call = bench.prepare(cell, answer, stream.get());
  const auto judge = [&](std::string_view when) {
    stream.wait();
    require_ok(rank.group.status());
    const std::string text = bench.check(cell, answer);
    require(text.empty(), fmt::format("{}: {}", when, text));
  };
  if (!cell.graph) {
    require_ok(all_reduce_residual_rms_norm(rank.group, call));
    return judge("eager");
  }
  const CapturedGraph graph(*rank.device.cuda(), stream.get(),
                            [&] { require_ok(all_reduce_residual_rms_norm(rank.group, call)); });
  for (int replay = 0; replay < 2; ++replay) {
    (void)bench.prepare(cell, answer, stream.get());
    graph.launch(stream.get());
    judge(fmt::format("replay {}", replay));
  }
}

// What a row has no room for is refused alike on every rank.
bool is_refused(const Rank& rank, const NormCell& cell) {
  const auto plan =
      rank.group.plan_all_reduce_residual_rms_norm({.count = cell.tokens * cell.hidden,
                                                    .dtype = cell.dtype,
                                                    .hidden = cell.hidden,
                                                    .symmetric = cell.buffers != BufferKind::kPlain,
                                                    .algorithm = cell.algorithm,
                                                    .captured = cell.graph});
  return plan.status().code() == StatusCode::kUnsupported;
}

void run_cells(Rank& rank, const std::vector<NormCell>& cells) {
  const OwnedStream stream(rank.device);
  std::map<BufferKind, std::unique_ptr<NormBench>> benches;
  for (const BufferKind kind :
       {BufferKind::kPlain, BufferKind::kSymmetric, BufferKind::kRegistered}) {
    benches[kind] = std::make_unique<NormBench>(rank.group, rank.device, kind, kMostBytes);
  }
  std::size_t run = 0;
  for (const NormCell& cell : cells) {
    if (is_refused(rank, cell)) continue;
    try {
      run_once(rank, *benches.at(cell.buffers), cell, stream);
    } catch (const std::exception& failure) {
      fail(fmt::format("{}: {}", cell.to_string(), failure.what()));
    }
    ++run;
  }
  require(2 * run > cells.size(), fmt::format("only {} of {} cells ran", run, cells.size()));
}

NormSpace space_from(const Options& options) {
  NormSpace space;
  space.backend = take(parse_backend(options.backend));
  space.algorithms = {""};
  for (const Algorithm& row : rows_of(Collective::kAllReduceResidualRmsNorm)) {
    space.algorithms.push_back(row.id);
  }
  if (!options.rows.empty()) {
    space.algorithms.clear();
    for (const std::string& name : options.rows) {
      const auto row = find_algorithm(Collective::kAllReduceResidualRmsNorm, name);
      space.algorithms.push_back(take(row)->id);
    }
  }
  keep_what_is_there(space, options.kinds, options.ranks);
  return space;
}

int run(const Options& options) {
  NormSpace space = space_from(options);
  if (space.ranks.empty()) {
    fmt::print("skipped: not enough GPUs\n0 passed, 0 failed\n");
    return kSkipped;
  }
  std::vector<NormCell> cells;
  for (int round = 0; round < options.rounds; ++round) {
    space.seed = options.seed + static_cast<std::uint64_t>(round);
    const auto some = space.selection();
    cells.insert(cells.end(), some.begin(), some.end());
  }
  return run_grouped(space.backend, cells, run_cells);
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  // Little staging, so that messages take several passes through it.
  ::setenv("TUTTI_STAGING_BYTES", "256K", 0);
  ::setenv("TUTTI_DEBUG", "OFF", 0);
  tutti::test::Options options;
  CLI::App app("Every row of all_reduce_residual_rms_norm against an independent reference");
  app.add_option("--backend", options.backend, "host or cuda");
  app.add_option("--kind", options.kinds, "threads,processes")->delimiter(',');
  app.add_option("--ranks", options.ranks, "numbers of ranks")->delimiter(',');
  app.add_option("--rows", options.rows, "names of rows")->delimiter(',');
  app.add_option("--seed", options.seed, "of the selection and the inputs");
  app.add_option("--rounds", options.rounds, "selections, each with inputs of its own");
  CLI11_PARSE(app, argc, argv);
  try {
    return tutti::test::run(options);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "{}\n", failure.what());
    return 2;
  }
}
