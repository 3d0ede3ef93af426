// What all_to_all refuses, what it takes, and what it does with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "support/check.hpp"
#include "support/ranks.hpp"
#include "support/told.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

// One rank alone keeps its only piece.
class AllToAllTest : public ::testing::Test {
 protected:
  void expect_refused(const AllToAll& call, std::string_view text) {
    const Status status = all_to_all(group(), call);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr(std::string(text)));
    EXPECT_TRUE(group().status().is_ok()) << "a refused call must leave the group usable";
  }
  Communicator& group() { return groups_[0]; }

  std::vector<Communicator> groups_ =
      take(Communicator::create_in_process(1, {.backend = Backend::kHost}));
  alignas(16) std::array<float, 64> values_{};
};

TEST_F(AllToAllTest, BadArgumentsAreRefused) {
  float* const v = values_.data();
  float* const w = v + 32;
  expect_refused({.input = nullptr, .output = v, .count = 1}, "null");
  expect_refused({.input = v, .output = nullptr, .count = 1}, "null");
  expect_refused({.input = v, .output = v, .count = 2}, "it does not run in place");
  expect_refused({.input = v, .output = v + 1, .count = 2}, "overlap");
  expect_refused({.input = v + 1, .output = v, .count = 2}, "overlap");
  expect_refused({.input = reinterpret_cast<char*>(v) + 2, .output = w, .count = 1}, "aligned");
  expect_refused({.input = v, .output = w, .count = ~std::size_t{0} / 2}, "overflow");
  expect_refused({.input = v, .output = w, .count = 1, .dtype = static_cast<DataType>(99)},
                 "dtype");
  expect_refused({.input = v, .output = w, .count = 1, .options = {.algorithm = "pull"}}, "push");
}

TEST_F(AllToAllTest, NothingNeedsNoBuffer) { EXPECT_TRUE(all_to_all(group(), {.count = 0})); }

TEST_F(AllToAllTest, BuffersMayLieSideBySide) {
  values_[0] = 3;
  EXPECT_TRUE(all_to_all(group(), {.input = &values_[0], .output = &values_[1], .count = 1}));
  EXPECT_EQ(values_[1], 3);
}

TEST_F(AllToAllTest, ExplainHasALinePerAlgorithmAndNoOperation) {
  const std::string text = explain(group(), "all_to_all", {.count = 1024});
  for (const char* name : {"push", "one_shot_push", "copy_engine", "nccl"}) {
    EXPECT_THAT(text, HasSubstr(std::string("all_to_all/") + name));
  }
  EXPECT_THAT(text, HasSubstr("all_to_all of 4K (1024 x fp32), symmetric"));
}

TEST_F(AllToAllTest, WhatTheHostCannotRunSaysWhy) {
  float* const v = values_.data();
  const Status status = all_to_all(
      group(), {.input = v, .output = v + 4, .count = 4, .options = {.algorithm = "nccl"}});
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("host"));
}

// Element i of what rank a has for rank b is a, b and i in one number: none may come elsewhere.
TEST(AllToAllPiecesTest, EveryPieceComesToItsPlace) {
  constexpr std::size_t kCount = 301;
  auto groups = take(Communicator::create_in_process(3, {.backend = Backend::kHost}));
  on_all_ranks(3, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const SymmetricMemory memory = take(group.allocate(6 * kCount * sizeof(int)));
    auto* const input = static_cast<int*>(memory.data());
    int* const output = input + 3 * kCount;
    const auto value = [](int from, int to, std::size_t i) {
      return from * 10'000 + to * 1'000 + static_cast<int>(i);
    };
    for (const std::string_view row : {"", "push", "one_shot_push", "copy_engine"}) {
      for (std::size_t i = 0; i < 3 * kCount; ++i) {
        input[i] = value(rank, static_cast<int>(i / kCount), i % kCount);
      }
      std::fill_n(output, 3 * kCount, -1);
      require_ok(all_to_all(group, {.input = input,
                                    .output = output,
                                    .count = kCount,
                                    .dtype = DataType::kInt32,
                                    .options = {.algorithm = row}}));
      for (std::size_t i = 0; i < 3 * kCount; ++i) {
        ASSERT_EQ(output[i], value(static_cast<int>(i / kCount), rank, i % kCount)) << row << i;
      }
    }
  });
}

// Two collectives that take as many bytes are not the same operation.
TEST(AllToAllPiecesTest, AnotherCollectiveIsFoundAndNamed) {
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    std::array<float, 2> input{}, output{};
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const Status status = rank == 0 ? all_to_all(group, {.input = input.data(),
                                                         .output = output.data(),
                                                         .count = 1,
                                                         .options = {.algorithm = "push"}})
                                    : all_gather(group, {.input = input.data(),
                                                         .output = output.data(),
                                                         .count = 1,
                                                         .options = {.algorithm = "push"}});
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    EXPECT_THAT(told(group, "all_to_all/push #1 (2 x fp32)"),
                HasSubstr("all_to_all/push #1 (2 x fp32)"));
  });
}

}  // namespace
}  // namespace tutti::test
