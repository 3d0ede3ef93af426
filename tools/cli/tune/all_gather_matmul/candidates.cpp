#include "tune/all_gather_matmul/candidates.hpp"

#include <algorithm>
#include <numeric>

namespace tutti::cli {
namespace {

using pipelines::Protocol;

constexpr double kAsGoodAsFastest = 1.02;

bool is_unfused(const MeasuredWay& measured) {
  return measured.way.algorithm == AllGatherMatmulAlgorithm::kUnfused;
}

}  // namespace

std::vector<AllGatherMatmulWay> ways_to_measure(
    std::span<const AllGatherMatmulAlgorithm> algorithms, Backend backend,
    const MoverOptions& chosen) {
  const std::vector<int> all_streams =
      backend == Backend::kCuda ? std::vector{4, 2} : std::vector{4};
  std::vector<AllGatherMatmulWay> ways = {{}};
  for (const AllGatherMatmulAlgorithm algorithm : algorithms) {
    if (algorithm == AllGatherMatmulAlgorithm::kFused && backend == Backend::kCuda) {
      for (const auto transport : {ArrivalTransport::kCopyEngine, ArrivalTransport::kPull}) {
        ways.push_back({.algorithm = algorithm, .transport = transport});
      }
      continue;
    }
    if (!is_pipelined(algorithm)) {
      ways.push_back({.algorithm = algorithm});
      continue;
    }
    const bool tiled = algorithm == AllGatherMatmulAlgorithm::kPipelinedTiles;
    for (const Protocol protocol : {Protocol::kGet, Protocol::kPut}) {
      for (const int streams : all_streams) {
        for (const int tiles : tiled ? std::vector{8, 4} : std::vector{0}) {
          ways.push_back(
              {algorithm, protocol, streams, tiles, chosen.mover, chosen.inter_stream_order});
        }
      }
    }
  }
  return ways;
}

std::vector<std::size_t> finalists(std::span<const MeasuredWay> measured, std::size_t count) {
  std::vector<std::size_t> order(measured.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return measured[i].time_us; });
  std::vector<std::size_t> kept;
  std::size_t others = 0;
  for (const std::size_t i : order) {
    if (is_unfused(measured[i]) || others++ < count) kept.push_back(i);
  }
  std::ranges::sort(kept);
  return kept;
}

AllGatherMatmulEntry decide(std::span<const MeasuredWay> measured) {
  const MeasuredWay& unfused = measured.front();
  const MeasuredWay* best = &unfused;
  const auto others = measured.subspan(1);
  const auto fastest = std::ranges::min_element(others, {}, &MeasuredWay::time_us);
  if (fastest != others.end() && fastest->time_us <= kFasterThanUnfused * unfused.time_us) {
    const double good =
        std::min(fastest->time_us * kAsGoodAsFastest, kFasterThanUnfused * unfused.time_us);
    best = &*std::ranges::find_if(others,
                                  [good](const MeasuredWay& each) { return each.time_us <= good; });
  }
  AllGatherMatmulEntry entry{.way = best->way,
                             .time_us = best->time_us,
                             .unfused_us = unfused.time_us,
                             .samples = best->samples};
  for (const MeasuredWay& other : others) {
    if (other.way.algorithm == best->way.algorithm) continue;
    if (entry.runner_up_us > 0 && other.time_us >= entry.runner_up_us) continue;
    entry.runner_up = other.way.algorithm;
    entry.runner_up_us = other.time_us;
  }
  return entry;
}

}  // namespace tutti::cli
