// What all_reduce_residual_rms_norm must give, in the plainest way and apart from the library's
// bodies: bit for bit, and how far that is from what float64 gives.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "support/inputs.hpp"

namespace tutti::test {

struct NormSpec {
  InputSpec inputs;  // of the sum; residual and weight are alike
  std::size_t tokens = 0, hidden = 0;
  DataType output_dtype = DataType::kFloat32;
  float epsilon = 1e-6F, scale = 1;

  std::size_t count() const { return tokens * hidden; }
  friend bool operator==(const NormSpec&, const NormSpec&) = default;
};

struct NormAnswer {
  Bytes input;  // of rank `rank`
  Bytes residual, weight;
  Bytes residual_output, output;
  // The largest error of `output` before it is rounded, relative, against float64; over tokens that
  // are finite.
  double error = 0;
};

NormAnswer norm_answer(const NormSpec& spec, int rank);

// What collectives.hpp promises of NormAnswer::error.
inline constexpr double kNormError = 1.0 / (1 << 20);

}  // namespace tutti::test
