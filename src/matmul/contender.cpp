#include "matmul/contender.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tutti {
namespace {

constexpr double kTie = 1.01;  // times that differ by at most this factor are equal

using Contenders = std::vector<MatmulContender>;

bool same_way(const SelectedMatmul& a, const SelectedMatmul& b) {
  return a.algorithm == b.algorithm && a.tiling == b.tiling && a.heuristic == b.heuristic;
}

// Of cublaslt_matmul, each product with the heuristic that is best for it alone.
void add_best_of_each_product(Contenders& contenders) {
  constexpr auto kCublasLt = MatmulAlgorithm::kCublasLt;
  MatmulContender best;
  for (const MatmulContender& each : contenders) {
    if (each.way.algorithm != kCublasLt) continue;
    if (best.part_us.empty()) best = each;
    for (std::size_t part = 0; part < best.part_us.size(); ++part) {
      // The library's own choice comes first, and stays in a tie.
      if (each.part_us[part] * kTie >= best.part_us[part]) continue;
      best.part_us[part] = each.part_us[part];
      best.way.heuristic[part] = each.way.heuristic[part];
    }
  }
  if (best.part_us.size() > 1) contenders.push_back(std::move(best));
}

// The least is preferred.
int rank_of(const SelectedMatmul& way, const SelectedMatmul& usual, const MatmulTiling& forecast) {
  if (same_way(way, usual)) return 0;
  if (way.algorithm == MatmulAlgorithm::kOwn) return way.tiling == forecast ? 1 : 2;
  return way.heuristic == decltype(way.heuristic){} ? 1 : 2;
}

std::string measured_text(const MatmulContender& winner, const MatmulContender* next,
                          const MatmulProblem& problem) {
  const double time = winner.microseconds();
  if (next == nullptr) return fmt::format("measured: {:.1f} us; nothing else ran", time);
  const double longer = next->microseconds() / time;
  const std::string name = text_of(next->way, problem);
  if (longer <= kTie) return fmt::format("measured: {:.1f} us, as fast as {}", time, name);
  return fmt::format("measured: {:.1f} us; the next, {}, takes {:.1f} % longer", time, name,
                     100 * (longer - 1));
}

}  // namespace

double MatmulContender::microseconds() const {
  return std::accumulate(part_us.begin(), part_us.end(), 0.0);
}

std::vector<MatmulContender> contenders_of(const std::vector<MatmulTiling>& tilings,
                                           const std::vector<int>& heuristics) {
  Contenders contenders;
  for (const MatmulTiling& tiling : tilings) {
    contenders.push_back({.way = {.algorithm = MatmulAlgorithm::kOwn, .tiling = tiling}});
  }
  const int most = heuristics.empty() ? 0 : *std::max_element(heuristics.begin(), heuristics.end());
  for (int heuristic = 0; heuristic < most; ++heuristic) {
    MatmulContender contender{.way = {.algorithm = MatmulAlgorithm::kCublasLt},
                              .parts = static_cast<int>(heuristics.size())};
    for (std::size_t part = 0; part < heuristics.size(); ++part) {
      contender.way.heuristic[part] = std::min(heuristic, heuristics[part] - 1);
    }
    contenders.push_back(std::move(contender));
  }
  return contenders;
}

SelectedMatmul fastest_way(std::vector<MatmulContender> contenders, const MatmulProblem& problem,
                           const SelectedMatmul& usual, const MatmulTiling& forecast) {
  std::erase_if(contenders, [](const auto& each) { return !each.failure.is_ok(); });
  add_best_of_each_product(contenders);
  const auto by_time = [](const MatmulContender& a, const MatmulContender& b) {
    return a.microseconds() < b.microseconds();
  };
  std::stable_sort(contenders.begin(), contenders.end(), by_time);
  const double tied = contenders.front().microseconds() * kTie;
  const auto end = std::find_if(contenders.begin(), contenders.end(),
                                [&](const auto& each) { return each.microseconds() > tied; });
  const auto winner = std::min_element(contenders.begin(), end, [&](const auto& a, const auto& b) {
    return rank_of(a.way, usual, forecast) < rank_of(b.way, usual, forecast);
  });
  const auto next = std::find_if(contenders.begin(), contenders.end(), [&](const auto& each) {
    return !same_way(each.way, winner->way);
  });
  SelectedMatmul selected = winner->way;
  selected.why = measured_text(*winner, next == contenders.end() ? nullptr : &*next, problem);
  return selected;
}

}  // namespace tutti
