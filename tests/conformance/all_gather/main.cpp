// tutti_conformance_all_gather: every row of all_gather, byte for byte. In each round every pair of
// values of any two dimensions occurs.
#include <cstdlib>
#include <map>

#include "conformance/all_gather/bench.hpp"
#include "conformance/grouped.hpp"
#include "support/cuda_graph.hpp"

namespace tutti::test {
namespace {

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
  run_possible(
      cells, [&](const GatherCell& cell) { return is_refused(rank, cell); },
      [&](const GatherCell& cell) { run_once(rank, *benches.at(cell.buffers), cell, stream); });
}

int run(const SelectionOptions& options) {
  const Backend backend = take(parse_backend(options.backend));
  return run_selections(GatherSpace{}, Collective::kAllGather, options,
                        [backend](Rank& rank, const std::vector<GatherCell>& cells) {
                          run_cells(rank, cells, backend);
                        });
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  // Little staging, so that messages take several passes through it.
  ::setenv("TUTTI_STAGING_BYTES", "64K", 0);
  ::setenv("TUTTI_CAPTURE_STAGING_BYTES", "16K", 0);
  ::setenv("TUTTI_DEBUG", "OFF", 0);
  return tutti::test::main_of_selections(argc, argv, "Every row of all_gather, byte for byte",
                                         tutti::test::run);
}
