// What all_gather refuses, what it takes, and what it does with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

#include "support/check.hpp"
#include "support/ranks.hpp"
#include "support/told.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

// One rank alone: rank 0, whose place is where the output begins.
class AllGatherTest : public ::testing::Test {
 protected:
  void expect_refused(const AllGather& call, std::string_view text) {
    const Status status = all_gather(group(), call);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr(std::string(text)));
    EXPECT_TRUE(group().status().is_ok()) << "a refused call must leave the group usable";
  }
  Communicator& group() { return groups_[0]; }

  std::vector<Communicator> groups_ =
      take(Communicator::create_in_process(1, {.backend = Backend::kHost}));
  alignas(16) std::array<float, 64> values_{};
};

TEST_F(AllGatherTest, BadArgumentsAreRefused) {
  float* const v = values_.data();
  expect_refused({.input = nullptr, .output = v, .count = 1}, "null");
  expect_refused({.input = v, .output = nullptr, .count = 1}, "null");
  expect_refused({.input = v, .output = v + 1, .count = 2}, "overlap");
  expect_refused({.input = v + 1, .output = v, .count = 2}, "overlap");
  expect_refused({.input = reinterpret_cast<char*>(v) + 2, .output = v + 8, .count = 1}, "aligned");
  expect_refused({.input = v, .output = v, .count = ~std::size_t{0} / 2}, "overflow");
  expect_refused({.input = v, .output = v, .count = 1, .dtype = static_cast<DataType>(99)},
                 "dtype");
  expect_refused({.input = v, .output = v, .count = 1, .options = {.algorithm = "pull"}}, "push");
}

TEST_F(AllGatherTest, NothingNeedsNoBuffer) { EXPECT_TRUE(all_gather(group(), {.count = 0})); }

TEST_F(AllGatherTest, ExplainHasALinePerAlgorithmAndNoOperation) {
  const std::string text = explain(group(), "all_gather", {.count = 1024});
  for (const char* name : {"push", "one_shot_push", "copy_engine", "nccl"}) {
    EXPECT_THAT(text, HasSubstr(std::string("all_gather/") + name));
  }
  EXPECT_THAT(text, HasSubstr("all_gather of 4K (1024 x fp32), symmetric"));
}

TEST_F(AllGatherTest, WhatTheHostCannotRunSaysWhy) {
  float* const v = values_.data();
  const Status status =
      all_gather(group(), {.input = v, .output = v, .count = 4, .options = {.algorithm = "nccl"}});
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("host"));
}

// Of three ranks the middle one has its place in the middle; of what lies elsewhere in the output
// nothing is an input.
TEST(AllGatherPlacesTest, OnlyTheOwnPlaceIsInPlace) {
  constexpr std::size_t kCount = 4;
  auto groups = take(Communicator::create_in_process(3, {.backend = Backend::kHost}));
  std::array<std::array<int, 3 * kCount>, 3> outputs{};
  on_all_ranks(3, [&](int rank) {
    auto& output = outputs[static_cast<std::size_t>(rank)];
    const auto place = static_cast<std::size_t>(rank) * kCount;
    for (std::size_t at = 0; at + kCount <= output.size(); ++at) {
      if (at == place) continue;
      const Status refused =
          all_gather(groups[static_cast<std::size_t>(rank)], {.input = &output[at],
                                                              .output = output.data(),
                                                              .count = kCount,
                                                              .dtype = DataType::kInt32});
      EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << rank << " " << at;
    }
    std::iota(&output[place], &output[place] + kCount, static_cast<int>(place));
    EXPECT_TRUE(all_gather(groups[static_cast<std::size_t>(rank)], {.input = &output[place],
                                                                    .output = output.data(),
                                                                    .count = kCount,
                                                                    .dtype = DataType::kInt32}));
  });
  for (const auto& output : outputs) {
    for (std::size_t i = 0; i < output.size(); ++i) EXPECT_EQ(output[i], static_cast<int>(i));
  }
}

// Inputs in place lie differently in each rank's segment: peers must find them all the same.
TEST(AllGatherPlacesTest, PeersFindInputsInPlace) {
  constexpr std::size_t kCount = 300;
  auto groups = take(Communicator::create_in_process(3, {.backend = Backend::kHost}));
  on_all_ranks(3, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const SymmetricMemory memory = take(group.allocate(3 * kCount * sizeof(int)));
    auto* const output = static_cast<int*>(memory.data());
    for (const std::string_view row : {"push", "one_shot_push", "copy_engine"}) {
      std::fill_n(output, 3 * kCount, -1);
      int* const own = output + static_cast<std::size_t>(rank) * kCount;
      std::fill_n(own, kCount, rank + 7);
      require_ok(all_gather(group, {.input = own,
                                    .output = output,
                                    .count = kCount,
                                    .dtype = DataType::kInt32,
                                    .options = {.algorithm = row}}));
      for (std::size_t i = 0; i < 3 * kCount; ++i) {
        EXPECT_EQ(output[i], static_cast<int>(i / kCount) + 7) << row << " " << i;
      }
    }
  });
}

// Where only pieces are registered, each begins a segment: it is not at its place in an output.
TEST(AllGatherPlacesTest, PiecesThatAreRegisteredAloneAreStaged) {
  constexpr std::size_t kCount = 300;
  auto groups = take(Communicator::create_in_process(3, {.backend = Backend::kHost}));
  on_all_ranks(3, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    std::vector<int> output(3 * kCount, -1);
    int* const own = output.data() + static_cast<std::size_t>(rank) * kCount;
    const SymmetricMemory piece = take(group.register_memory(own, kCount * sizeof(int)));
    EXPECT_TRUE(piece.zero_copy());
    std::fill_n(own, kCount, rank + 7);
    require_ok(all_gather(group, {.input = own,
                                  .output = output.data(),
                                  .count = kCount,
                                  .dtype = DataType::kInt32,
                                  .options = {.algorithm = "copy_engine"}}));
    for (std::size_t i = 0; i < output.size(); ++i) {
      EXPECT_EQ(output[i], static_cast<int>(i / kCount) + 7) << i;
    }
  });
}

// Two collectives that take as many bytes are not the same operation.
TEST(AllGatherPlacesTest, AnotherCollectiveIsFoundAndNamed) {
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    std::array<float, 2> input{}, output{};
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const Status status = rank == 0 ? all_gather(group, {.input = input.data(),
                                                         .output = output.data(),
                                                         .count = 1,
                                                         .options = {.algorithm = "push"}})
                                    : all_reduce(group, {.input = input.data(),
                                                         .output = output.data(),
                                                         .count = 2,
                                                         .options = {.algorithm = "two_shot"}});
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    EXPECT_THAT(told(group, "all_gather/push #1 (2 x fp32)"),
                HasSubstr("all_gather/push #1 (2 x fp32)"));
  });
}

}  // namespace
}  // namespace tutti::test
