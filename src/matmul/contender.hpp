// What tune() compares: the ways to run one call, and which of them it keeps. Times are values
// here.
#pragma once

#include <functional>
#include <vector>

#include "matmul/select.hpp"

namespace tutti {

// One way to run a call.
struct MatmulContender {
  SelectedMatmul way;
  // Enqueues its parts, one by one: of own_matmul there is one, of cublaslt_matmul each product.
  int parts = 1;
  std::function<Status(int part)> run = {};
  Status failure = {};               // why it cannot run; ok: it can
  std::vector<double> part_us = {};  // median time of each part

  double microseconds() const;  // of all parts
};

// Each way that `forced` allows: own_matmul with each of `tilings`, and cublaslt_matmul with each
// heuristic. `heuristics`: how many the library has for each product; empty: it cannot run the
// call.
std::vector<MatmulContender> contenders_of(const std::vector<MatmulTiling>& tilings,
                                           const std::vector<int>& heuristics);

// The fastest of those that ran, at least one; `why` has its time and that of the next. Of several
// products each has the heuristic with which it is fastest. Where the difference is at most 1 %,
// it is `usual`, what select() says, then `forecast`, the fastest tiling by the forecast, or the
// library's own choice.
SelectedMatmul fastest_way(std::vector<MatmulContender> contenders, const MatmulProblem& problem,
                           const SelectedMatmul& usual, const MatmulTiling& forecast);

}  // namespace tutti
