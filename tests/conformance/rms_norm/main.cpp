// tutti_conformance_rms_norm: every row of all_reduce_residual_rms_norm against an independent
// reference, bit for bit, which itself is held against float64. In each round every pair of values
// of any two dimensions occurs.
#include <fmt/format.h>

#include <cstdlib>
#include <map>

#include "conformance/grouped.hpp"
#include "conformance/rms_norm/bench.hpp"
#include "support/cuda_graph.hpp"

namespace tutti::test {
namespace {

constexpr std::size_t kMostBytes = 300'000 * 4 + 64;

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
  graph.instantiate(rank);
  for (int replay = 0; replay < 2; ++replay) {
    (void)bench.prepare(cell, answer, stream.get());
    graph.launch(stream.get());
    judge(fmt::format("replay {}", replay));
  }
}

// What a row has no room for is refused alike on every rank.
bool is_refused(const Rank& rank, const NormCell& cell) {
  const auto plan = rank.group.plan("all_reduce_residual_rms_norm",
                                    {.count = cell.tokens * cell.hidden,
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
  run_possible(
      cells, [&](const NormCell& cell) { return is_refused(rank, cell); },
      [&](const NormCell& cell) { run_once(rank, *benches.at(cell.buffers), cell, stream); });
}

int run(const SelectionOptions& options) {
  return run_selections(NormSpace{}, Collective::kAllReduceResidualRmsNorm, options, run_cells);
}

}  // namespace
}  // namespace tutti::test

int main(int argc, char** argv) {
  // Little staging, so that messages take several passes through it.
  ::setenv("TUTTI_STAGING_BYTES", "256K", 0);
  ::setenv("TUTTI_DEBUG", "OFF", 0);
  return tutti::test::main_of_selections(
      argc, argv, "Every row of all_reduce_residual_rms_norm against an independent reference",
      tutti::test::run);
}
