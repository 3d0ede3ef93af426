// The measurement of one setting: all arms in turn, checked before and after.
#pragma once

#include <string>
#include <vector>

#include "bench/matmul/arms.hpp"
#include "bench/record.hpp"

namespace tutti::cli {

struct MeasuredMatmul {
  std::vector<Row> rows = {};
  std::vector<std::vector<double>> samples_us = {};  // of each row, round by round
  std::vector<double> host_us = {};  // of each row, of a call: the median; 0: not measured
  std::vector<Skipped> skipped = {};
  std::vector<std::string> wrong = {};  // for people: of each row with wrong elements, the first
};

// `cuda`: null on the host.
Result<MeasuredMatmul> measure_matmul(MatmulDevice& device, CudaDriver* cuda,
                                      const MatmulBenchOptions& options,
                                      const MatmulSetting& setting);
// Likewise of arms that are there already.
Result<MeasuredMatmul> measure_arms(MatmulDevice& device, const MatmulBenchOptions& options,
                                    MatmulSets& sets, MatmulArms& arms);

// The ratio of speeds of two arms, round by round: by it the noise of a run is known.
MatmulNoise noise_of(const std::vector<double>& samples, const std::vector<double>& again);

}  // namespace tutti::cli
