// The predicted time of a fused all_gather_matmul, for `tutti explain all_gather_matmul`.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "known_gpus.hpp"
#include "matmul/predict_gated.hpp"

namespace tutti::cli {

struct FusedQuestion {
  std::size_t m = 0, k = 0;
  std::vector<std::size_t> n;  // of each product
  DataType dtype = DataType::kBfloat16;
  MatrixLayout layout = MatrixLayout::kRowMajor;  // of B
  int ranks = 8;
  KnownGpu gpu = {};
};

struct FusedForecast {
  ArrivalPlan plan;
  int pullers = 0;     // blocks that bring A; 0: a copy engine
  std::string config;  // of the own kernel
  double last_us = 0;  // the last chunk arrives
  GatedPrediction said = {};
};

// In each order with one chunk and with two of each shard: arrival by one copy engine, as modelled.
// Then by k-groups, which some blocks of the kernel bring instead of multiplying. kUnsupported
// where the own kernel cannot run it.
Result<std::vector<FusedForecast>> fused_forecasts(const FusedQuestion& question);

std::string fused_text(const FusedQuestion& question, const std::vector<FusedForecast>& forecasts);
nlohmann::ordered_json fused_json(const FusedQuestion& question,
                                  const std::vector<FusedForecast>& forecasts);

}  // namespace tutti::cli
