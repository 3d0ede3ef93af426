// tutti_conformance_reduce_scatter: every row of reduce_scatter against the reference of
// all_reduce, bit for bit. In each round every pair of values of any two dimensions occurs.
#include <cstdlib>
#include <map>

#include "conformance/grouped.hpp"
#include "conformance/reduce_scatter/bench.hpp"
#include "support/cuda_graph.hpp"

namespace tutti::test {
namespace {

constexpr std::size_t kMostElements = 140'000;  // of an input

void run_once(Rank& rank, ScatterBench& bench, Cell cell, const OwnedStream& stream) {
  const ReduceScatter call = bench.prepare(cell, stream.get());
  const auto judge = [&](std::string_view when) {
    stream.wait();
    require_ok(rank.group.status());
    const std::string text = bench.check(cell);
    require(text.empty(), fmt::format("{}: {}", when, text));
  };
  if (cell.mode == Mode::kEager) {
    require_ok(reduce_scatter(rank.group, call));
    return judge("eager");
  }
  const bool late = cell.mode == Mode::kGraphRegistered;
  if (late) require_ok(rank.group.start_capture());
  const CapturedGraph graph(*rank.device.cuda(), stream.get(),
                            [&] { require_ok(reduce_scatter(rank.group, call)); });
  if (late) require_ok(rank.group.finish_capture());
  for (int replay = 0; replay < 2; ++replay) {
    cell.seed += 100'000;
    (void)bench.prepare(cell, stream.get());
    graph.launch(stream.get());
    judge(fmt::format("replay {}", replay));
  }
}

// What a row has no room for is refused alike on every rank.
bool is_refused(const Rank& rank, const Cell& cell) {
  const auto plan =
      rank.group.plan_reduce_scatter({.count = cell.count * static_cast<std::size_t>(cell.ranks),
                                      .dtype = cell.dtype,
                                      .op = {.kind = cell.op},
                                      .symmetric = cell.buffers != BufferKind::kPlain,
                                      .in_place = cell.in_place,
                                      .algorithm = cell.algorithm,
                                      .captured = cell.mode != Mode::kEager});
  return plan.status().code() == StatusCode::kUnsupported;
}

void run_cells(Rank& rank, const std::vector<Cell>& cells, Backend backend) {
  const OwnedStream stream(rank.device);
  std::map<BufferKind, std::unique_ptr<ScatterBench>> benches;
  for (const BufferKind kind : kAllBufferKinds) {
    if (kind == BufferKind::kRegisteredVirtual && backend == Backend::kHost) continue;
    benches[kind] = std::make_unique<ScatterBench>(rank, kind, kMostElements);
  }
  (void)rank.group.prepare_nccl();  // it cannot be made inside a capture; it may not be there
  run_possible(
      cells, [&](const Cell& cell) { return is_refused(rank, cell); },
      [&](const Cell& cell) { run_once(rank, *benches.at(cell.buffers), cell, stream); });
}

int run(const SelectionOptions& options) {
  Space space;
  space.most_elements = kMostElements;
  // Around tiles, blocks of them, and passes through staging.
  space.counts = {0, 1, 7, 8, 15, 16, 17, 255, 256, 1000, 4095, 4096, 20'001};
  const Backend backend = take(parse_backend(options.backend));
  return run_selections(
      space, Collective::kReduceScatter, options,
      [backend](Rank& rank, const std::vector<Cell>& cells) { run_cells(rank, cells, backend); });
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  // Little staging, so that messages take several passes through it.
  ::setenv("TUTTI_STAGING_BYTES", "16K", 0);
  ::setenv("TUTTI_CAPTURE_STAGING_BYTES", "8K", 0);
  ::setenv("TUTTI_DEBUG", "OFF", 0);
  return tutti::test::main_of_selections(argc, argv, "Every row of reduce_scatter, bit for bit",
                                         tutti::test::run);
}
