// What all_reduce refuses, and what it says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "support/check.hpp"
#include "support/ranks.hpp"
#include "tutti/tutti.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

class AllReduceTest : public ::testing::Test {
 protected:
  void expect_refused(const AllReduce& call, std::string_view text) {
    const Status status = all_reduce(group(), call);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr(std::string(text)));
    EXPECT_TRUE(group().status().is_ok()) << "a refused call must leave the group usable";
  }
  Communicator& group() { return groups_[0]; }

  std::vector<Communicator> groups_ =
      take(Communicator::create_in_process(1, {.backend = Backend::kHost}));
  alignas(16) std::array<float, 64> values_{};
};

TEST_F(AllReduceTest, BadArgumentsAreRefused) {
  float* const v = values_.data();
  expect_refused({.input = nullptr, .output = v, .count = 1}, "null");
  expect_refused({.input = v, .output = nullptr, .count = 1}, "null");
  expect_refused({.input = v, .output = v + 1, .count = 2}, "overlap");
  expect_refused({.input = v + 1, .output = v, .count = 2}, "overlap");
  expect_refused({.input = reinterpret_cast<char*>(v) + 2, .output = v + 8, .count = 1}, "aligned");
  expect_refused({.input = v, .output = v, .count = ~std::size_t{0} / 2}, "overflow");
  expect_refused({.input = v, .output = v, .count = 1, .dtype = static_cast<DataType>(99)},
                 "dtype");
  expect_refused({.input = v, .output = v, .count = 1, .op = {static_cast<OpKind>(99)}}, "op");
  expect_refused({.input = v, .output = v, .count = 1, .options = {.algorithm = "three_shot"}},
                 "one_shot");
  expect_refused({.input = v, .output = v, .count = 1, .options = {.sm_budget = -1}},
                 "sm_budget is -1");
}

// The host has no multiprocessors to spare.
TEST_F(AllReduceTest, ABudgetOfMultiprocessorsIsNothingToTheHost) {
  float* const v = values_.data();
  for (const int budget : {0, 1}) {
    EXPECT_TRUE(all_reduce(
        group(), {.input = v, .output = v, .count = 4, .options = {.sm_budget = budget}}));
    EXPECT_EQ(*group().plan("all_reduce", {.count = 4, .sm_budget = budget}),
              *group().plan("all_reduce", {.count = 4}));
  }
}

TEST_F(AllReduceTest, NeighboursDoNotOverlap) {
  float* const v = values_.data();
  EXPECT_TRUE(all_reduce(group(), {.input = v, .output = v + 2, .count = 2}));
  EXPECT_TRUE(all_reduce(group(), {.input = v + 2, .output = v, .count = 2}));
  EXPECT_TRUE(all_reduce(group(), {.input = v, .output = v, .count = 64}));
}

TEST_F(AllReduceTest, NothingNeedsNoBuffer) { EXPECT_TRUE(all_reduce(group(), {.count = 0})); }

TEST_F(AllReduceTest, AlgorithmsGoByIdAndByName) {
  float* const v = values_.data();
  for (const std::string_view name : {"two_shot", "all_reduce/two_shot"}) {
    EXPECT_TRUE(
        all_reduce(group(), {.input = v, .output = v, .count = 4, .options = {.algorithm = name}}));
    const auto plan = group().plan("all_reduce", {.count = 4, .algorithm = name});
    ASSERT_TRUE(plan.is_ok());
    EXPECT_EQ(plan->algorithm, "all_reduce/two_shot");
    EXPECT_EQ(plan->source, PlanSource::kCall);
  }
}

TEST_F(AllReduceTest, WhatTheHostCannotRunSaysWhy) {
  float* const v = values_.data();
  const Status status =
      all_reduce(group(), {.input = v, .output = v, .count = 4, .options = {.algorithm = "nccl"}});
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("host"));
  EXPECT_TRUE(group().status().is_ok());
}

TEST_F(AllReduceTest, ExplainHasALinePerAlgorithm) {
  const std::string text = explain(group(), "all_reduce", {.count = 1024});
  for (const char* name : {"one_shot", "two_shot", "nccl"}) EXPECT_THAT(text, HasSubstr(name));
}

TEST(GroupCallsTest, AnEndWithoutAStartIsRefused) {
  EXPECT_EQ(group_end().code(), StatusCode::kInvalidArgument);
  group_start();
  EXPECT_TRUE(group_end());
}

// The first failure is the answer, and the other operations were tried.
TEST(GroupCallsTest, AFailureInAGroupIsReported) {
  auto groups = take(Communicator::create_in_process(2, {.backend = Backend::kHost}));
  std::array<float, 2> values = {1, 2};
  std::array<float, 2> alone = {3, 4};
  auto single = take(Communicator::create_in_process(1, {.backend = Backend::kHost}));
  group_start();
  for (std::size_t r = 0; r < 2; ++r) {
    EXPECT_TRUE(all_reduce(
        groups[r],
        {.input = &values[r], .output = &values[r], .count = 1, .options = {.algorithm = "nccl"}}));
  }
  EXPECT_TRUE(all_reduce(single[0], {.input = &alone[0], .output = &alone[1], .count = 1}));
  const Status status = group_end();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(alone[1], 3.0f);
}

}  // namespace
}  // namespace tutti::test
