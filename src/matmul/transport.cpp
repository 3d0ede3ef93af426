#include "matmul/transport.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/try.hpp"
#include "base/units.hpp"
#include "matmul/forecast.hpp"
#include "matmul/predict_gated.hpp"
#include "matmul/select.hpp"

namespace tutti {
namespace {

// More pullers than this bring no more, where the link is the limit. A product that takes half of
// the SMs or less, as where ranks share a GPU, has fewer.
constexpr int kMostPullers = 16;
constexpr int kMultiprocessorsPerPuller = 4;
// The ranks meet once more behind a kernel that pulls; with copy engines, beside it.
constexpr double kMeetingBehindUs = 9;

int pullers_of(int multiprocessors) {
  const int fit = multiprocessors / kMultiprocessorsPerPuller / kMatmulCluster * kMatmulCluster;
  return std::min(kMostPullers, fit);
}

// Empty: pullers can bring it.
std::string why_not_pulled(const TransportQuestion& question) {
  if (pullers_of(question.multiprocessors) > 0) return {};
  return fmt::format("{} SMs are too few for blocks that pull", question.multiprocessors);
}

// A flag for each k-group of a shard.
ArrivalPlan pulled_plan(const TransportQuestion& question) {
  constexpr int kKGroups = 8;
  static_assert(kKGroups * kMostArrivalShards <= kMostArrivalFlags);
  return {.shards = question.plan.shards, .own = question.plan.own, .k_groups = kKGroups};
}

GatheredRows gathered_rows(const MatmulProblem& problem) {
  return {.m = problem.m, .bytes_per_row = problem.k * size_of(problem.dtype)};
}

Result<double> predict_copy_engine(const TransportQuestion& question) {
  const ArrivalModel model = copy_engine_model(question.plan.shards);
  TUTTI_ASSIGN(const ArrivalTrace trace,
               modelled_arrival(question.plan, gathered_rows(question.problem), model, ""));
  const GatedCall call{.problem = question.problem,
                       .tiling = question.tiling,
                       .plan = question.plan,
                       .multiprocessors = question.multiprocessors};
  return predict_gated(call, &trace, {}).total_us();
}

struct PulledForecast {
  GatedCall call;
  int pullers = 0;
};

// The tile is the fastest of those beside the pullers.
PulledForecast pulled_forecast(const TransportQuestion& question, const ArrivalPlan& plan) {
  const int pullers = pullers_of(question.multiprocessors);
  const int left = question.multiprocessors - pullers;
  const MatmulForecast alone = question.tile != nullptr
                                   ? forecast(*question.tile, question.problem, left)
                                   : fastest_tile(question.problem, left);
  return {
      {.problem = question.problem, .tiling = alone.tiling, .plan = plan, .multiprocessors = left},
      pullers};
}

}  // namespace

std::string ChosenTransport::text() const {
  std::string how = pullers > 0
                        ? fmt::format("pulled by {} blocks, {} k-groups", pullers, plan.k_groups)
                        : "by copy engines";
  if (copy_engine_us > 0 && pull_us > 0) {
    how +=
        fmt::format(" (predicted: pull {:.0f} us, copy_engine {:.0f} us)", pull_us, copy_engine_us);
  }
  return how;
}

Result<ChosenTransport> choose_transport(const TransportQuestion& question) {
  ChosenTransport by_copy_engine{.plan = question.plan, .tiling = question.tiling};
  if (question.forced == ArrivalTransport::kCopyEngine) return by_copy_engine;
  const std::string why = why_not_pulled(question);
  if (!why.empty()) {
    if (!question.forced) return by_copy_engine;
    return Status(StatusCode::kUnsupported, why);
  }
  const ArrivalPlan plan = pulled_plan(question);
  auto [call, pullers] = pulled_forecast(question, plan);
  if (!question.forced) {
    TUTTI_ASSIGN(by_copy_engine.copy_engine_us, predict_copy_engine(question));
    // Without any wait for A.
    const double least_us = predict_gated(call, nullptr, {}).matmul_us() + kMeetingBehindUs;
    if (least_us >= by_copy_engine.copy_engine_us) return by_copy_engine;
  }
  const ArrivalModel model = pulled_arrival_model(pullers, question.plan.shards);
  TUTTI_ASSIGN(call, fastest_by_k_groups(call, model));
  ChosenTransport by_pull{.transport = ArrivalTransport::kPull,
                          .plan = call.plan,
                          .tiling = call.tiling,
                          .pullers = pullers};
  if (question.forced) return by_pull;
  TUTTI_ASSIGN(const ArrivalTrace trace,
               modelled_arrival(call.plan, gathered_rows(question.problem), model, ""));
  by_pull.copy_engine_us = by_copy_engine.copy_engine_us;
  by_pull.pull_us = by_copy_engine.pull_us =
      predict_gated(call, &trace, {}).total_us() + kMeetingBehindUs;
  return by_pull.pull_us < by_pull.copy_engine_us ? by_pull : by_copy_engine;
}

}  // namespace tutti
