// The benchmark's own judgement of all_reduce_residual_rms_norm.
#include "bench/norm_inputs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace tutti::cli {
namespace {

// What a rank has at the end, in fp32, where 2^-22 off is good and 2^-18 is not.
Bytes answer(const NormInputs& inputs, const NormInputs::Shape& shape, std::uint32_t iteration,
             double error) {
  const std::size_t count = shape.count();
  std::vector<float> sum(count), weight(shape.hidden);
  for (int r = 0; r < shape.ranks; ++r) {
    const Bytes bytes = inputs.input(r, iteration);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    for (std::size_t i = 0; i < count; ++i) sum[i] += values[i] + (r == 0 ? values[count + i] : 0);
    for (std::size_t k = 0; k < shape.hidden; ++k) weight[k] = values[2 * count + k];
  }
  std::vector<float> result = sum;
  for (std::size_t first = 0; first < count; first += shape.hidden) {
    double squares = 0;
    for (std::size_t k = 0; k < shape.hidden; ++k) squares += std::pow(double{sum[first + k]}, 2);
    const double mean = squares / static_cast<double>(shape.hidden);
    for (std::size_t k = 0; k < shape.hidden; ++k) {
      const double right =
          sum[first + k] * weight[k] / std::sqrt(mean + double{NormInputs::kEpsilon});
      result.push_back(static_cast<float>(right * (1 + error)));
    }
  }
  Bytes bytes(result.size() * sizeof(float));
  std::memcpy(bytes.data(), result.data(), bytes.size());
  return bytes;
}

TEST(NormInputs, JudgeByFloat64) {
  const NormInputs::Shape shape{
      .dtype = DataType::kFloat32, .ranks = 5, .tokens = 3, .hidden = 1032};
  const NormInputs inputs(shape);
  for (const std::uint32_t iteration : {0u, 1u}) {
    EXPECT_EQ(inputs.count_wrong(answer(inputs, shape, iteration, 0), iteration).count, 0u);
    EXPECT_EQ(inputs.count_wrong(answer(inputs, shape, iteration, 0x1p-22), iteration).count, 0u);
    EXPECT_GT(inputs.count_wrong(answer(inputs, shape, iteration, 0x1p-18), iteration).count,
              2000u);
    EXPECT_GT(inputs.count_wrong(answer(inputs, shape, 1 - iteration, 0), iteration).count, 2000u);
  }
}

TEST(NormInputs, ResidualOutputIsRightToTheBit) {
  const NormInputs::Shape shape{
      .dtype = DataType::kFloat32, .ranks = 2, .tokens = 2, .hidden = 1024};
  const NormInputs inputs(shape);
  Bytes bytes = answer(inputs, shape, 0, 0);
  bytes[4 * 1500] ^= std::byte{1};
  const Mismatches found = inputs.count_wrong(bytes, 0);
  EXPECT_EQ(found.count, 1u);
  EXPECT_EQ(found.first, 1500u);
}

}  // namespace
}  // namespace tutti::cli
