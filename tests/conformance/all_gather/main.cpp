// tutti_conformance_all_gather: every row of all_gather, byte for byte. In each round every pair of
// values of any two dimensions occurs.
#include <CLI/CLI.hpp>

#include <cstdlib>

#include "algorithms/catalogue.hpp"
#include "conformance/all_gather/bench.hpp"
#include "conformance/grouped.hpp"
#include "support/cuda_graph.hpp"

namespace tutti::test {
namespace {

struct Options {
  std::string backend = "host";
  std::vector<std::string> kinds, rows;
  std::vector<int> ranks;
  std::uint64_t seed = 1;
  int rounds = 4;
};

void run_once(Rank& rank, GatherBench& bench, GatherCell cell, const OwnedStream& stream) {
  const AllGather call = bench.prepare(cell, stream.get());
  const auto judge = [&](std::string_view when) {
    stream.wait();
    require_ok(rank.group.status());
    const std::string text = bench.check(cell);
    require(text.empty(), fmt::format("{}: {}", when, text));
  };
  if (cell.mode == Mode::kEager) {
    require_ok(all_gather(rank.group, call));
    return judge("eager");
  }
  const bool late = cell.mode == Mode::kGraphRegistered;
  if (late) require_ok(rank.group.start_capture());
  const CapturedGraph graph(*rank.device.cuda(), stream.get(),
                            [&] { require_ok(all_gather(rank.group, call)); });
  if (late) require_ok(rank.group.finish_capture());
  for (int replay = 0; replay < 2; ++replay) {
    cell.seed += 100'000;
    (void)bench.prepare(cell, stream.get());
    graph.launch(stream.get());
    judge(fmt::format("replay {}", replay));
  }
}

// What a row has no room for is refused alike on every rank.
bool is_refused(const Rank& rank, const GatherCell& cell) {
  const auto plan =
      rank.group.plan_all_gather({.count = cell.count * static_cast<std::size_t>(cell.ranks),
                                  .dtype = cell.dtype,
                                  .symmetric = cell.buffers != BufferKind::kPlain,
                                  .in_place = cell.in_place,
                                  .algorithm = cell.algorithm,
                                  .captured = cell.mode != Mode::kEager});
  return plan.status().code() == StatusCode::kUnsupported;
}

void run_cells(Rank& rank, const std::vector<GatherCell>& cells, Backend backend) {
  const OwnedStream stream(rank.device);
  std::map<BufferKind, std::unique_ptr<GatherBench>> benches;
  for (const BufferKind kind : kAllBufferKinds) {
    if (kind == BufferKind::kRegisteredVirtual && backend == Backend::kHost) continue;
    benches[kind] = std::make_unique<GatherBench>(rank, kind, GatherSpace::kMostBytes);
  }
  (void)rank.group.prepare_nccl();  // it cannot be made inside a capture; it may not be there
  std::size_t run = 0;
  for (const GatherCell& cell : cells) {
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

int run(const Options& options) {
  GatherSpace space;
  space.backend = take(parse_backend(options.backend));
  const bool host = space.backend == Backend::kHost;
  if (options.rows.empty()) space.algorithms = {""};
  for (const Algorithm& row : rows_of(Collective::kAllGather)) {
    const bool is_named = std::count(options.rows.begin(), options.rows.end(), row.name()) > 0;
    if ((options.rows.empty() && !(host && row.host == nullptr)) || is_named) {
      space.algorithms.push_back(row.id);
    }
  }
  require(!space.algorithms.empty(), "--rows names no row of all_gather");
  keep_what_is_there(space, options.kinds, options.ranks);
  if (space.ranks.empty()) {
    fmt::print("skipped: not enough GPUs\n0 passed, 0 failed\n");
    return kSkipped;
  }
  std::vector<GatherCell> cells;
  for (int round = 0; round < options.rounds; ++round) {
    space.seed = options.seed + static_cast<std::uint64_t>(round);
    const auto some = space.selection();
    cells.insert(cells.end(), some.begin(), some.end());
  }
  return run_grouped(space.backend, cells, [&](Rank& rank, const std::vector<GatherCell>& some) {
    run_cells(rank, some, space.backend);
  });
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  // Little staging, so that messages take several passes through it.
  ::setenv("TUTTI_STAGING_BYTES", "64K", 0);
  ::setenv("TUTTI_CAPTURE_STAGING_BYTES", "16K", 0);
  ::setenv("TUTTI_DEBUG", "OFF", 0);
  tutti::test::Options options;
  CLI::App app("Every row of all_gather, byte for byte");
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
