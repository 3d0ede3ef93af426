// What reduce_scatter refuses, what it takes, and what it does with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "algorithms/catalogue.hpp"
#include "support/check.hpp"
#include "support/inputs.hpp"
#include "support/ranks.hpp"
#include "support/told.hpp"
#include "tutti/tutti.hpp"
#include "unit/api/groups.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

// The rows that the host can run, of pieces one behind the other.
std::vector<std::string_view> host_rows() {
  std::vector<std::string_view> names;
  for (const Algorithm& row : rows_of(Collective::kReduceScatter)) {
    if (row.host != nullptr && !row.splits_rows) names.push_back(row.name());
  }
  return names;
}

// One rank alone: rank 0, whose place is where the input begins.
class ReduceScatterTest : public ::testing::Test {
 protected:
  void expect_refused(const ReduceScatter& call, std::string_view text) {
    const Status status = reduce_scatter(group(), call);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr(std::string(text)));
    EXPECT_TRUE(group().status().is_ok()) << "a refused call must leave the group usable";
  }
  Communicator& group() { return groups_[0]; }

  std::vector<Communicator> groups_ =
      take(Communicator::create_in_process(1, {.backend = Backend::kHost}));
  alignas(16) std::array<float, 64> values_{};
};

TEST_F(ReduceScatterTest, BadArgumentsAreRefused) {
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
  expect_refused({.input = v, .output = v, .count = 1, .options = {.algorithm = "two_shot"}},
                 "pull");
}

TEST_F(ReduceScatterTest, RowsMustDivideTheCountAndAreNotSplitInPlace) {
  float* const v = values_.data();
  expect_refused({.input = v, .output = v + 32, .count = 7, .rows = 2}, "2 rows do not divide");
  expect_refused({.input = v, .output = v + 32, .count = 7, .rows = 0}, "0 rows do not divide");
  expect_refused({.input = v, .output = v, .count = 8, .rows = 2}, "rows are split");
  ReduceScatter call{.input = v, .output = v + 32, .count = 8, .rows = 2};
  EXPECT_TRUE(reduce_scatter(group(), call));
  call.options.algorithm = "pull";
  const Status status = reduce_scatter(group(), call);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("gives each rank a contiguous block"));
  call.rows = 1;
  call.options.algorithm = "pull_rows";
  EXPECT_THAT(reduce_scatter(group(), call).message(), HasSubstr("only splits a matrix"));
}

TEST_F(ReduceScatterTest, NothingNeedsNoBuffer) {
  EXPECT_TRUE(reduce_scatter(group(), {.count = 0}));
}

TEST_F(ReduceScatterTest, ExplainHasALinePerAlgorithm) {
  const std::string text = explain(group(), "reduce_scatter", {.count = 1024});
  for (const Algorithm& row : rows_of(Collective::kReduceScatter)) {
    EXPECT_THAT(text, HasSubstr(std::string(row.id)));
  }
  EXPECT_THAT(text, HasSubstr("reduce_scatter of 4K (1024 x fp32, sum), symmetric"));
}

TEST_F(ReduceScatterTest, WhatTheHostCannotRunSaysWhy) {
  float* const v = values_.data();
  const Status status = reduce_scatter(
      group(), {.input = v, .output = v, .count = 4, .options = {.algorithm = "nccl"}});
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("host"));
}

// Of three ranks the middle one has its place in the middle; nowhere else in the input is an
// output.
TEST(ReduceScatterPlacesTest, OnlyTheOwnPlaceIsInPlace) {
  constexpr std::size_t kCount = 4;
  auto groups = take(Communicator::create_in_process(3, {.backend = Backend::kHost}));
  std::array<std::array<int, 3 * kCount>, 3> inputs{};
  on_all_ranks(3, [&](int rank) {
    auto& input = inputs[static_cast<std::size_t>(rank)];
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const auto place = static_cast<std::size_t>(rank) * kCount;
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = 100 * rank + static_cast<int>(i);
    const auto call_at = [&](std::size_t at) {
      return reduce_scatter(group, {.input = input.data(),
                                    .output = &input[at],
                                    .count = kCount,
                                    .dtype = DataType::kInt32});
    };
    for (std::size_t at = 0; at + kCount <= input.size(); ++at) {
      if (at == place) continue;
      EXPECT_EQ(call_at(at).code(), StatusCode::kInvalidArgument) << rank << " " << at;
    }
    EXPECT_TRUE(call_at(place));
    for (std::size_t i = 0; i < input.size(); ++i) {
      const bool own = i >= place && i < place + kCount;
      const int index = static_cast<int>(i);
      EXPECT_EQ(input[i], own ? 300 + 3 * index : 100 * rank + index) << rank << " " << i;
    }
  });
}

// Outputs in place lie differently in each rank's segment, and inputs alike. Where pieces alone are
// registered, inputs are not, and are staged.
TEST(ReduceScatterPlacesTest, PeersFindTheInputsOfOutputsInPlace) {
  constexpr std::size_t kCount = 300;
  auto groups = take(Communicator::create_in_process(3, {.backend = Backend::kHost}));
  on_all_ranks(3, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const SymmetricMemory memory = take(group.allocate(3 * kCount * sizeof(int)));
    std::vector<int> plain(3 * kCount);
    int* const piece = plain.data() + static_cast<std::size_t>(rank) * kCount;
    const SymmetricMemory registered = take(group.register_memory(piece, kCount * sizeof(int)));
    EXPECT_TRUE(registered.zero_copy());
    for (int* const input : {static_cast<int*>(memory.data()), plain.data()}) {
      for (const std::string_view row : host_rows()) {
        for (std::size_t i = 0; i < 3 * kCount; ++i) input[i] = rank + static_cast<int>(i);
        int* const own = input + static_cast<std::size_t>(rank) * kCount;
        require_ok(reduce_scatter(group, {.input = input,
                                          .output = own,
                                          .count = kCount,
                                          .dtype = DataType::kInt32,
                                          .options = {.algorithm = row}}));
        for (std::size_t i = 0; i < kCount; ++i) {
          const int at = rank * static_cast<int>(kCount) + static_cast<int>(i);
          ASSERT_EQ(own[i], 3 * at + 3) << row << " " << i;
        }
      }
    }
  });
}

// Full mantissas: another order of the additions, another width or another rounding would show.
TEST(ReduceScatterBitsTest, APieceHasTheBitsOfAllReduce) {
  constexpr int kRanks = 3;
  constexpr std::size_t kCount = 997, kAll = kRanks * kCount;
  auto groups = take(Communicator::create_in_process(kRanks, {.backend = Backend::kHost}));
  for (const DataType dtype : {DataType::kBfloat16, DataType::kFloat32, DataType::kFloat8E4M3}) {
    for (const OpKind op : {OpKind::kSum, OpKind::kAvg, OpKind::kPreMulSum}) {
      const InputSpec spec{
          .dtype = dtype, .op = op, .kind = InputKind::kRandom, .ranks = kRanks, .seed = 7};
      on_all_ranks(kRanks, [&](int rank) {
        Communicator& group = groups[static_cast<std::size_t>(rank)];
        const Bytes input = make_input(spec, rank, kAll);
        const ReduceOp scaled{op, scalar_of(spec, rank)};
        Bytes whole(input.size());
        require_ok(all_reduce(group, {.input = input.data(),
                                      .output = whole.data(),
                                      .count = kAll,
                                      .dtype = dtype,
                                      .op = scaled,
                                      .options = {.algorithm = "two_shot"}}));
        for (const std::string_view row : host_rows()) {
          const Algorithm* const found = take(find_algorithm(Collective::kReduceScatter, row));
          if (!found->takes(dtype, op) || found->order != Order::kRankOrder) continue;
          Bytes piece(kCount * size_of(dtype));
          require_ok(reduce_scatter(group, {.input = input.data(),
                                            .output = piece.data(),
                                            .count = kCount,
                                            .dtype = dtype,
                                            .op = scaled,
                                            .options = {.algorithm = row}}));
          const std::byte* const own = &whole[static_cast<std::size_t>(rank) * piece.size()];
          EXPECT_EQ(std::memcmp(piece.data(), own, piece.size()), 0)
              << row << " " << to_string(dtype) << " " << to_string(op);
        }
      });
    }
  }
}

// Two collectives that take as many bytes are not the same operation.
TEST(ReduceScatterPlacesTest, AnotherCollectiveIsFoundAndNamed) {
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    std::array<float, 2> input{}, output{};
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const Status status = rank == 0 ? reduce_scatter(group, {.input = input.data(),
                                                             .output = output.data(),
                                                             .count = 1,
                                                             .options = {.algorithm = "pull"}})
                                    : all_reduce(group, {.input = input.data(),
                                                         .output = output.data(),
                                                         .count = 2,
                                                         .options = {.algorithm = "two_shot"}});
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    EXPECT_THAT(told(group, "reduce_scatter/pull #1 (2 x fp32, sum)"),
                HasSubstr("reduce_scatter/pull #1 (2 x fp32, sum)"));
  });
}

// Element (i, j) of a matrix of 5 rows is i, j and the rank in one number: a rank gets its columns
// of each row, through staging and without.
TEST(ReduceScatterRows, EveryRankGetsItsColumns) {
  constexpr int kRanks = 3, kRows = 5, kColumns = 7, kAll = kRows * kRanks * kColumns;
  auto groups = take(Communicator::create_in_process(kRanks, {.backend = Backend::kHost}));
  on_all_ranks(kRanks, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    const SymmetricMemory memory = take(group.allocate(kAll * sizeof(int)));
    std::vector<int> plain(kAll);
    for (int* const input : {static_cast<int*>(memory.data()), plain.data()}) {
      for (int e = 0; e < kAll; ++e) input[e] = e + 1000 * rank;
      std::vector<int> output(kRows * kColumns, -1);
      require_ok(reduce_scatter(group, {.input = input,
                                        .output = output.data(),
                                        .count = output.size(),
                                        .rows = kRows,
                                        .dtype = DataType::kInt32}));
      for (int e = 0; e < kRows * kColumns; ++e) {
        const int at = e / kColumns * kRanks * kColumns + rank * kColumns + e % kColumns;
        ASSERT_EQ(output[static_cast<std::size_t>(e)], 3 * at + 3000) << e;
      }
    }
  });
}

// A matrix and pieces of as many elements are not the same operation.
TEST(ReduceScatterRows, AnotherNumberOfRowsIsAMismatch) {
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    std::array<float, 24> input{};
    std::array<float, 12> output{};
    const Status status = reduce_scatter(
        groups[static_cast<std::size_t>(rank)],
        {.input = input.data(), .output = output.data(), .count = 12, .rows = rank == 0 ? 3U : 4U});
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
  });
}

}  // namespace
}  // namespace tutti::test
