// Pre-multipliers of every kind: numbers that no double holds, and numbers in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "support/check.hpp"
#include "support/ranks.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"

namespace tutti::test {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr int kTwoScaled = 2;
constexpr std::string_view kScaledBy[] = {"one_shot", "two_shot", "two_shot_staged"};

// What both ranks get of one everywhere, each with its own multiplier, from a few algorithms.
template <class T>
void expect_scaled_sum(const std::array<ReduceOp, kTwoScaled>& ops, T sum) {
  auto groups = groups_of(kTwoScaled);
  on_all_ranks(kTwoScaled, [&](int rank) {
    for (const std::string_view algorithm : kScaledBy) {
      std::vector<T> data(1001, T{1});
      require_ok(all_reduce(
          groups[static_cast<std::size_t>(rank)], data,
          {.op = ops[static_cast<std::size_t>(rank)], .options = {.algorithm = algorithm}}));
      EXPECT_THAT(data, Each(sum)) << algorithm << ", rank " << rank;
    }
  });
}

TEST(Multipliers, IntegersOf64BitsAreExact) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 62;
  expect_scaled_sum({ReduceOp::pre_mul_sum(kLarge), ReduceOp::pre_mul_sum(kLarge - 1)},
                    2 * (kLarge - 1) + 1);
  expect_scaled_sum({ReduceOp::pre_mul_sum(INT64_MIN), ReduceOp::pre_mul_sum(1)}, INT64_MIN + 1);
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  expect_scaled_sum({ReduceOp::pre_mul_sum(kMost), ReduceOp::pre_mul_sum(0)}, kMost);
  expect_scaled_sum({ReduceOp::pre_mul_sum(kMost), ReduceOp::pre_mul_sum(0x1p70)},
                    kMost - 1);  // wraps
}

TEST(Multipliers, MayLieInMemoryOnSomeRanks) {
  const std::int64_t large = (std::int64_t{1} << 62) + 1;
  expect_scaled_sum({ReduceOp::pre_mul_sum_at(&large), ReduceOp::pre_mul_sum(-3)}, large - 3);
  const float half = 0.5F;
  expect_scaled_sum({ReduceOp::pre_mul_sum(2), ReduceOp::pre_mul_sum_at(&half)}, 2.5F);
  const std::int8_t minus = -1;
  expect_scaled_sum({ReduceOp::pre_mul_sum_at(&minus), ReduceOp::pre_mul_sum_at(&minus)},
                    std::int8_t{-2});
}

// When the call runs: in a group, when that ends.
TEST(Multipliers, InMemoryAreReadByTheOperation) {
  auto groups = groups_of(1);
  double factor = 2;
  std::vector<double> data(4, 3.0);
  group_start();
  require_ok(all_reduce(groups.front(), data, {.op = ReduceOp::pre_mul_sum_at(&factor)}));
  factor = 5;
  require_ok(group_end());
  EXPECT_THAT(data, Each(15.0));
}

TEST(Multipliers, InMemoryOfOtherReductionsAreRefused) {
  auto groups = groups_of(1);
  alignas(8) std::array<std::int32_t, 8> from{1, 2, 3, 4}, to{};
  const auto refusal = [&](const ReduceOp& op) {
    const Status status = reduce_scatter(groups.front(), {.input = from.data(),
                                                          .output = to.data(),
                                                          .count = 4,
                                                          .dtype = DataType::kInt32,
                                                          .op = op});
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
    require_ok(groups.front().status());
    return status.message();
  };
  EXPECT_THAT(refusal({.kind = OpKind::kAvg, .device_scalar = &from[5]}), HasSubstr("with avg"));
  EXPECT_THAT(refusal(ReduceOp::pre_mul_sum_at(reinterpret_cast<const char*>(&from[5]) + 2)),
              HasSubstr("aligned to the element size, 4 bytes"));
  EXPECT_THAT(refusal(ReduceOp::pre_mul_sum_at(&to[3])), HasSubstr("lies in the output"));
  EXPECT_THAT(refusal(ReduceOp::pre_mul_sum_at(to.data())), HasSubstr("lies in the output"));
  const auto call = [&](const void* scalar) {
    return reduce(groups.front(), {.input = from.data(),
                                   .output = to.data(),
                                   .count = 4,
                                   .dtype = DataType::kInt32,
                                   .op = ReduceOp::pre_mul_sum_at(scalar)});
  };
  require_ok(call(&to[4]));
  require_ok(call(&from[1]));
  EXPECT_EQ(to[3], 8);
}

}  // namespace
}  // namespace tutti::test
