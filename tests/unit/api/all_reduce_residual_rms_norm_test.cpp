// What all_reduce_residual_rms_norm refuses, and what it says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "support/check.hpp"
#include "support/ranks.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kHidden = 1024, kTokens = 2, kElements = kTokens * kHidden;

// A call that is right, of buffers that lie one behind the other.
struct Buffers {
  std::vector<float> values = std::vector<float>(6 * kElements, 1.0F);

  float* at(std::size_t matrix) { return values.data() + matrix * kElements; }
  AllReduceResidualRmsNorm call() {
    return {.input = at(0),
            .residual = at(1),
            .weight = at(2),
            .residual_output = at(3),
            .output = at(4),
            .tokens = kTokens,
            .hidden = kHidden,
            .dtype = DataType::kFloat32};
  }
};

class RmsNormTest : public ::testing::Test {
 protected:
  template <class Change>
  void expect_refused(std::string_view text, Change change) {
    AllReduceResidualRmsNorm call = buffers_.call();
    change(call);
    const Status status = all_reduce_residual_rms_norm(group(), call);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr(std::string(text)));
    EXPECT_TRUE(group().status().is_ok()) << "a refused call must leave the group usable";
  }
  template <class Change>
  void expect_taken(Change change) {
    AllReduceResidualRmsNorm call = buffers_.call();
    change(call);
    const Status status = all_reduce_residual_rms_norm(group(), call);
    EXPECT_TRUE(status.is_ok()) << status.to_string();
  }
  Communicator& group() { return groups_[0]; }

  std::vector<Communicator> groups_ =
      take(Communicator::create_in_process(1, {.backend = Backend::kHost}));
  Buffers buffers_;
};
using Call = AllReduceResidualRmsNorm;

TEST_F(RmsNormTest, OtherShapesAreRefused) {
  for (const std::size_t hidden : {0u, 8u, 1016u, 1028u, 1025u, 16392u, 1u << 20}) {
    expect_refused("multiple of 8 from 1024 to 16384", [&](Call& call) { call.hidden = hidden; });
  }
  expect_refused("overflows", [](Call& call) { call.tokens = ~std::size_t{0} / 2048; });
  expect_refused("more than 2^32 - 1", [](Call& call) { call.tokens = std::size_t{1} << 32; });
}

TEST_F(RmsNormTest, OtherTypesAreRefused) {
  for (const DataType dtype :
       {DataType::kFloat64, DataType::kInt32, DataType::kFloat8E4M3, static_cast<DataType>(99)}) {
    expect_refused("dtype must be", [&](Call& call) { call.dtype = dtype; });
  }
  for (const DataType dtype : {DataType::kFloat32, DataType::kBfloat16, DataType::kInt8}) {
    expect_refused("output_dtype", [&](Call& call) { call.output_dtype = dtype; });
  }
}

TEST_F(RmsNormTest, NumbersThatMeanNothingAreRefused) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float epsilon : {-1e-6F, kNan, kInfinity}) {
    expect_refused("epsilon", [&](Call& call) { call.epsilon = epsilon; });
  }
  for (const float scale : {0.0F, -1.0F, kNan, kInfinity}) {
    expect_refused("scale", [&](Call& call) {
      call.output_dtype = DataType::kFloat8E4M3;
      call.scale = scale;
    });
  }
  expect_refused("8-bit output alone", [](Call& call) { call.scale = 2; });
}

TEST_F(RmsNormTest, BadPointersAreRefused) {
  expect_refused("input is null", [](Call& call) { call.input = nullptr; });
  expect_refused("residual is null", [](Call& call) { call.residual = nullptr; });
  expect_refused("weight is null", [](Call& call) { call.weight = nullptr; });
  expect_refused("residual_output is null", [](Call& call) { call.residual_output = nullptr; });
  expect_refused("output is null", [](Call& call) { call.output = nullptr; });
  expect_refused("weight must be aligned to its element size, 4 bytes",
                 [](Call& call) { call.weight = static_cast<const std::byte*>(call.weight) + 2; });
}

TEST_F(RmsNormTest, OverlapsAreRefused) {
  float* const v = buffers_.at(0);
  expect_refused("input and output overlap", [&](Call& call) { call.output = v + 8; });
  expect_refused("input and residual_output", [&](Call& call) { call.residual_output = v; });
  expect_refused("residual and residual_output",
                 [&](Call& call) { call.residual_output = buffers_.at(1) + 8; });
  expect_refused("residual and output", [&](Call& call) { call.output = buffers_.at(1); });
  expect_refused("weight and output", [&](Call& call) { call.output = buffers_.at(2); });
  expect_refused("residual_output and output",
                 [](Call& call) { call.output = call.residual_output; });
  expect_refused("input and output overlap", [&](Call& call) {
    call.output = v;
    call.output_dtype = DataType::kFloat8E5M2;
  });
  // In place, but the residual is there as well.
  expect_refused("residual and output", [&](Call& call) {
    call.output = v;
    call.residual = v;
  });
}

TEST_F(RmsNormTest, WhatMayBeOneBufferIsTaken) {
  expect_taken([](Call&) {});
  expect_taken([&](Call& call) { call.output = buffers_.at(0); });
  expect_taken([&](Call& call) { call.residual_output = buffers_.at(1); });
  expect_taken([&](Call& call) { call.residual = call.input; });
  expect_taken([&](Call& call) { call.output_dtype = DataType::kFloat8E4M3; });
}

TEST_F(RmsNormTest, NoTokensNeedNoBuffers) {
  EXPECT_TRUE(all_reduce_residual_rms_norm(group(), {.tokens = 0, .hidden = 4096}));
  EXPECT_EQ(all_reduce_residual_rms_norm(group(), {.tokens = 0, .hidden = 7}).code(),
            StatusCode::kInvalidArgument);
}

TEST_F(RmsNormTest, RowsOfOtherCollectivesAreUnknown) {
  expect_refused("'ring' for all_reduce_residual_rms_norm; known are one_shot_push",
                 [](Call& call) { call.options.algorithm = "ring"; });
}

TEST_F(RmsNormTest, PlansKnowHowLargeATokenIs) {
  const auto plan =
      group().plan("all_reduce_residual_rms_norm",
                   {.count = 64 * 8192, .dtype = DataType::kBfloat16, .hidden = 8192});
  ASSERT_TRUE(plan.is_ok()) << plan.status().to_string();
  EXPECT_THAT(plan->algorithm, HasSubstr("all_reduce_residual_rms_norm/"));
  const auto whole = group().plan("all_reduce_residual_rms_norm", {.count = 64 * 16384,
                                                                   .hidden = 16384,
                                                                   .symmetric = false,
                                                                   .algorithm = "two_shot",
                                                                   .captured = true});
  EXPECT_TRUE(whole.is_ok()) << whole.status().to_string();
}

TEST_F(RmsNormTest, ExplainNamesItsRowsAlone) {
  const std::string text =
      explain(group(), "all_reduce_residual_rms_norm",
              {.count = 64 * 8192, .dtype = DataType::kBfloat16, .hidden = 8192});
  EXPECT_THAT(text, HasSubstr("rms_norm of 1M (524288 x bf16, sum), hidden 8192"));
  EXPECT_THAT(text, HasSubstr("all_reduce_residual_rms_norm/one_shot_push"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr(" all_reduce/")));
}

// One thread for both ranks: the operations are noted, and the name of the algorithm with them.
TEST(RmsNormGroup, RunsWithAllReducesInOneGroup) {
  auto groups = take(Communicator::create_in_process(2, {.backend = Backend::kHost}));
  std::vector<Buffers> buffers(2);
  group_start();
  for (std::size_t r = 0; r < 2; ++r) {
    const std::string name = "one_shot_push";
    AllReduceResidualRmsNorm call = buffers[r].call();
    call.options.algorithm = name;
    EXPECT_TRUE(all_reduce_residual_rms_norm(groups[r], call));
    EXPECT_TRUE(all_reduce(groups[r], {.input = buffers[r].at(3),
                                       .output = buffers[r].at(5),
                                       .count = kElements,
                                       .options = {.algorithm = name}}));
  }
  EXPECT_EQ(buffers[0].at(3)[0], 1.0F) << "nothing runs before group_end";
  ASSERT_TRUE(group_end());
  for (Buffers& each : buffers) {
    EXPECT_EQ(each.at(3)[kElements - 1], 3.0F);
    EXPECT_NEAR(each.at(4)[kElements - 1], 1.0F, 1e-5F);
    EXPECT_EQ(each.at(5)[kElements - 1], 6.0F);
  }
}

// What differs on one rank is found, not computed with.
TEST(RmsNormGroup, AnotherEpsilonIsAnotherOperation) {
  auto groups = groups_of(2);
  std::vector<Buffers> buffers(2);
  std::vector<Status> statuses(2);
  on_all_ranks(2, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    AllReduceResidualRmsNorm call = buffers[r].call();
    call.epsilon = rank == 0 ? 1e-5F : 1e-6F;
    statuses[r] = all_reduce_residual_rms_norm(groups[r], call);
  });
  for (const Status& status : statuses) EXPECT_FALSE(status.is_ok());
}

}  // namespace
}  // namespace tutti::test
