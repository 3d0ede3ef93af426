#include "explain_fused.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/try.hpp"
#include "base/units.hpp"
#include "matmul/select.hpp"

namespace tutti::cli {
namespace {

constexpr const char* kOfCopyEngine = "one copy engine over NVLink";

// Of matrices that begin at multiples of 256 bytes and have no gaps.
Result<MatmulProblem> fused_problem_of(const FusedQuestion& question) {
  alignas(256) static std::byte anywhere[256];  // never read or written
  std::vector<MatmulProduct> more;
  for (std::size_t i = 1; i < question.n.size(); ++i) {
    more.push_back({.b = anywhere, .c = anywhere, .n = question.n[i]});
  }
  TUTTI_ASSIGN(const CheckedMatmul checked, check({.a = anywhere,
                                                   .b = anywhere,
                                                   .c = anywhere,
                                                   .m = question.m,
                                                   .n = question.n.front(),
                                                   .k = question.k,
                                                   .dtype = question.dtype,
                                                   .b_layout = question.layout,
                                                   .more = more}));
  return checked.problem;
}

std::string name_of(const FusedForecast& forecast) {
  const ArrivalPlan& plan = forecast.plan;
  if (forecast.pullers > 0) {
    return fmt::format("{} k-groups, {} pullers", plan.k_groups, forecast.pullers);
  }
  return fmt::format("{}, {} chunk{} per shard", to_string(plan.order), plan.chunks,
                     plan.chunks == 1 ? "" : "s");
}

// One way to bring A and to compute with it.
struct FusedWay {
  ArrivalPlan plan;
  int pullers = 0;
};

std::vector<FusedWay> fused_ways(const FusedQuestion& question) {
  std::vector<FusedWay> ways;
  for (const int chunks : {1, 2}) {
    for (const ArrivalOrder order :
         {ArrivalOrder::kPlain, ArrivalOrder::kRotated, ArrivalOrder::kFrontier}) {
      ways.push_back({{.shards = question.ranks, .chunks = chunks, .order = order}});
    }
  }
  constexpr int kMostKGroups = 16;
  const int k_groups = std::min(kMostKGroups, kMostArrivalFlags / question.ranks);
  for (const int pullers : {8, 12, 16, 20}) {
    const int left = question.gpu.multiprocessors - pullers;
    if (question.ranks < 2 || left < kMatmulCluster) continue;
    ways.push_back({{.shards = question.ranks, .k_groups = k_groups}, pullers});
  }
  return ways;
}

Result<FusedForecast> forecast_of_way(const FusedQuestion& question, const MatmulProblem& problem,
                                      FusedWay way) {
  const int left = question.gpu.multiprocessors - way.pullers;
  const ArrivalModel model = way.pullers > 0 ? pulled_arrival_model(way.pullers, question.ranks)
                                             : copy_engine_model(question.ranks);
  GatedCall call{.problem = problem,
                 .tiling = fastest_tile(problem, left).tiling,
                 .plan = way.plan,
                 .multiprocessors = left};
  if (way.pullers > 0) {
    TUTTI_ASSIGN(call, fastest_by_k_groups(call, model));
  }
  const GatheredRows rows{.m = problem.m, .bytes_per_row = problem.k * size_of(problem.dtype)};
  TUTTI_ASSIGN(const ArrivalTrace trace, modelled_arrival(call.plan, rows, model, kOfCopyEngine));
  return FusedForecast{.plan = call.plan,
                       .pullers = way.pullers,
                       .config = config_text(call.tiling, problem.m),
                       .last_us = trace.last_us(),
                       .said = predict_gated(call, &trace, {})};
}

}  // namespace

Result<std::vector<FusedForecast>> fused_forecasts(const FusedQuestion& question) {
  if (question.m == 0 || question.n.empty() || question.n.front() == 0 || question.k == 0) {
    return Status(StatusCode::kInvalidArgument, "fused: --m, --n and --k have to be at least 1");
  }
  TUTTI_ASSIGN(const MatmulProblem problem, fused_problem_of(question));
  const std::string why = why_not(MatmulAlgorithm::kOwn, problem,
                                  {.backend = Backend::kCuda,
                                   .compute = question.gpu.compute,
                                   .multiprocessors = question.gpu.multiprocessors,
                                   .own_kernels = true});
  if (!why.empty()) return Status(StatusCode::kUnsupported, "fused: " + why);
  std::vector<FusedForecast> forecasts;
  for (const FusedWay& way : fused_ways(question)) {
    TUTTI_ASSIGN(FusedForecast forecast, forecast_of_way(question, problem, way));
    forecasts.push_back(std::move(forecast));
  }
  return forecasts;
}

std::string fused_text(const FusedQuestion& question, const std::vector<FusedForecast>& forecasts) {
  const FusedForecast& first = forecasts.front();
  const ArrivalModel copied = copy_engine_model(question.ranks);
  std::string text = fmt::format(
      "all_gather_matmul/fused: a prediction, of rank 0 of {} x {}\n"
      "own_matmul alone ({}): {:.1f} us at {:g} MHz\n"
      "A arrives by {} (a model): {:g} us, then {:g} us per chunk and {:g} GB/s\n\n"
      "{:<28}{:>10}{:>10}{:>10}{:>8}{:>8}{:>12}\n",
      question.ranks, question.gpu.name, first.config, first.said.matmul_us(),
      kMatmulForecastMegahertz, kOfCopyEngine, copied.start_us, copied.operation_us,
      copied.gigabytes_per_second, "order", "arrival", "total us", "/ matmul", "order", "wait",
      "contention");
  for (const FusedForecast& each : forecasts) {
    const GatedPrediction& said = each.said;
    text +=
        fmt::format("{:<28}{:>10.1f}{:>10.1f}{:>10.3f}{:>8.1f}{:>8.1f}{:>12.1f}\n", name_of(each),
                    each.last_us, said.total_us(), said.total_us() / first.said.matmul_us(),
                    said.order_us, said.gating_us, said.contention_us);
  }
  return text;
}

nlohmann::ordered_json fused_json(const FusedQuestion& question,
                                  const std::vector<FusedForecast>& forecasts) {
  nlohmann::ordered_json orders = nlohmann::ordered_json::array();
  for (const FusedForecast& each : forecasts) {
    const GatedPrediction& said = each.said;
    orders.push_back({{"order", to_string(each.plan.order)},
                      {"chunks", each.plan.chunks},
                      {"k_groups", each.plan.k_groups},
                      {"pullers", each.pullers},
                      {"last_us", each.last_us},
                      {"total_us", said.total_us()},
                      {"matmul_us", said.matmul_us()},
                      {"order_us", said.order_us},
                      {"gating_us", said.gating_us},
                      {"contention_us", said.contention_us}});
  }
  return {{"algorithm", "all_gather_matmul/fused"},
          {"kind", "prediction"},
          {"gpu", question.gpu.name},
          {"ranks", question.ranks},
          {"m", question.m},
          {"k", question.k},
          {"n", question.n},
          {"config", forecasts.front().config},
          {"megahertz", kMatmulForecastMegahertz},
          {"orders", orders}};
}

}  // namespace tutti::cli
