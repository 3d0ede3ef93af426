#include "support/series.hpp"

#include <algorithm>
#include <array>

namespace tutti::test {

Trial Series::next() {
  constexpr std::array kTypes = {DataType::kFloat64,  DataType::kFloat32,    DataType::kFloat16,
                                 DataType::kBfloat16, DataType::kFloat8E4M3, DataType::kFloat8E5M2,
                                 DataType::kInt8,     DataType::kUint32,     DataType::kInt64};
  constexpr std::array kOps = {OpKind::kSum, OpKind::kSum, OpKind::kProd,     OpKind::kMin,
                               OpKind::kMax, OpKind::kAvg, OpKind::kPreMulSum};
  constexpr std::array<std::string_view, 3> kRows = {"", "one_shot", "two_shot"};
  constexpr unsigned kMagnitudes = 16;
  Trial trial;
  trial.dtype = kTypes[random_() % kTypes.size()];
  trial.op = kOps[random_() % kOps.size()];
  const std::size_t below = std::size_t{2} << random_() % kMagnitudes;
  const std::size_t most = kMostBytes / size_of(trial.dtype) - 64;
  trial.count = std::min(random_() % below, most);
  trial.offset = static_cast<int>(random_() % 9);
  trial.in_place = random_() % 4 == 0;
  trial.seed = random_();
  trial.algorithm = kRows[random_() % kRows.size()];
  plain_ = random_() % 3 == 0;
  return trial;
}

}  // namespace tutti::test
