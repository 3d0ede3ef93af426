#include "conformance/soak.hpp"

#include <fmt/format.h>

#include <deque>

#include "support/check.hpp"
#include "support/graph_lane.hpp"
#include "support/series.hpp"

namespace tutti::test {
namespace {

// Three graphs that replay between the eager operations, on streams of their own. On GPUs alone.
std::deque<GraphLane> graphs_of(Rank& rank) {
  std::deque<GraphLane> graphs;
  if (rank.spec.backend == Backend::kHost) return graphs;
  graphs.emplace_back(rank, BufferKind::kSymmetric, Trial{.count = 4099, .algorithm = "two_shot"});
  graphs.emplace_back(rank, BufferKind::kPlain, Trial{.count = 700, .algorithm = "one_shot"});
  graphs.emplace_back(rank, BufferKind::kPlain,
                      Trial{.dtype = DataType::kBfloat16,
                            .count = 60001,
                            .in_place = true,
                            .inputs = InputKind::kExact});
  return graphs;
}

}  // namespace

std::string run_soak(const GroupSpec& spec, int operations, unsigned seed) {
  return run_group(spec, [&](Rank& rank) {
    Lane symmetric(rank, BufferKind::kSymmetric, Series::kMostBytes);
    Lane plain(rank, BufferKind::kPlain, Series::kMostBytes);
    std::deque<GraphLane> graphs = graphs_of(rank);
    Series series(seed);
    for (int i = 0; i < operations; ++i) {
      Trial trial = series.next();
      // What is left to tutti may run on NCCL, which adds in an order of its own.
      if (trial.algorithm.empty()) trial.inputs = InputKind::kExact;
      try {
        GraphLane* const beside = !graphs.empty() && trial.seed % 4 == 0
                                      ? &graphs[trial.seed / 4 % graphs.size()]
                                      : nullptr;
        if (beside != nullptr) beside->launch(trial.seed);
        (series.plain() ? plain : symmetric).expect_right(trial);
        if (beside == nullptr) continue;
        require_ok(beside->finish());
        beside->check();
      } catch (const Failure& failure) {
        fail(fmt::format("operation {} ({} x {}, {}, {}): {}", i, trial.count,
                         to_string(trial.dtype), to_string(trial.op), trial.algorithm,
                         failure.what()));
      }
    }
  });
}

}  // namespace tutti::test
