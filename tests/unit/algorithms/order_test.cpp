// What a row's order promises of the bits: rows in rank order give the same on every rank, for
// every row and any number of blocks; rings the same on every rank, for any number of blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <random>

#include "algorithms/catalogue.hpp"
#include "executors/peer/host.hpp"
#include "support/host_world.hpp"
#include "support/ranks.hpp"
#include "tutti/device/scalar.hpp"

namespace tutti::test {
namespace {

constexpr std::size_t kManyElements = 3001, kStagingBytes = 64 * KiB;
using Elements = std::vector<Bfloat16>;
using Groups = std::vector<Elements>;  // by rank

Groups random_inputs(int ranks) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  Groups inputs(static_cast<std::size_t>(ranks), Elements(kManyElements));
  for (Elements& input : inputs) {
    for (Bfloat16& element : input) element = from_float<Bfloat16>(normal(random));
  }
  return inputs;
}

Groups reduced(const Algorithm& row, const Groups& inputs, int blocks,
               std::size_t staging_bytes = kStagingBytes) {
  const int ranks = static_cast<int>(inputs.size());
  HostWorld world(ranks, kManyElements * sizeof(Bfloat16), kStagingBytes);
  Groups outputs(inputs.size(), Elements(kManyElements));
  on_all_ranks(ranks, [&](int rank) {
    const Elements& input = inputs[static_cast<std::size_t>(rank)];
    std::memcpy(world.input<Bfloat16>(rank), input.data(), kManyElements * sizeof(Bfloat16));
    KernelArgs work = world.work(rank, kManyElements, false);
    work.blocks = blocks;
    work.ring = ring_slots(row, kStagingBytes, blocks, 256);
    work.staging_bytes = staging_bytes;
    EXPECT_EQ(run_on_host(row.host(DataType::kBfloat16, OpKind::kSum), work), Outcome::kDone);
    const Bfloat16* output = world.output<Bfloat16>(rank);
    outputs[static_cast<std::size_t>(rank)].assign(output, output + kManyElements);
  });
  return outputs;
}

bool is_in_rank_order(const Algorithm& row) { return row.order == Order::kRankOrder; }
bool is_ring(const Algorithm& row) { return row.ring_directions > 0; }

template <class Is, class Check>
void for_each_row(Is is, Check check) {
  for (const Algorithm& row : rows_of(Collective::kAllReduce)) {
    if (row.host != nullptr && is(row)) check(row);
  }
}

// Of all ranks and rows, for any number of blocks, in one pass through staging and in many.
template <class Is>
void expect_the_same_bits(Is is) {
  for (const int ranks : {2, 3, 5, 8}) {
    const Groups inputs = random_inputs(ranks);
    Elements first;
    for_each_row(is, [&](const Algorithm& row) {
      if (ranks > row.max_ranks_host) return;
      for (const int blocks : {1, 3}) {
        const std::size_t staging_bytes = blocks > 1 ? kLeastStagingBytes : kStagingBytes;
        for (const Elements& output : reduced(row, inputs, blocks, staging_bytes)) {
          if (first.empty()) first = output;
          EXPECT_EQ(output, first) << row.id << ", " << ranks << " ranks, " << blocks << " blocks";
        }
      }
    });
    EXPECT_FALSE(first.empty());
  }
}

TEST(OrderTest, RowsInRankOrderGiveTheSameBits) { expect_the_same_bits(is_in_rank_order); }

TEST(OrderTest, RingsGiveTheSameBitsOnAllRanks) { expect_the_same_bits(is_ring); }

// How many pairs of a rank and an element are not rank 0's.
int differences(const Groups& outputs) {
  int count = 0;
  for (const Elements& output : outputs) {
    for (std::size_t i = 0; i < output.size(); ++i) count += output[i] == outputs[0][i] ? 0 : 1;
  }
  return count;
}

// Two ranks have what is so large that others are lost beside it, until it cancels.
Groups inputs_that_cancel() {
  Groups inputs = random_inputs(5);
  std::ranges::fill(inputs[1], from_float<Bfloat16>(0x1p30f));
  std::ranges::fill(inputs[3], from_float<Bfloat16>(-0x1p30f));
  return inputs;
}

// Whatever the switch's order is: where one rank decides on a sum, all have the same.
TEST(OrderTest, RowsThatSaySoGiveTheSameBitsOnAllRanks) {
  const Groups inputs = inputs_that_cancel();
  const auto says_so = [&](const Algorithm& row) {
    return row.order != Order::kNone && row.max_ranks_host >= static_cast<int>(inputs.size());
  };
  for_each_row(says_so, [&](const Algorithm& row) {
    EXPECT_EQ(differences(reduced(row, inputs, 2)), 0) << row.id;
  });
}

// The emulated switch has no order that anyone could rely on.
TEST(OrderTest, NegativeControlWhereEachRankAsksTheSwitch) {
  const Groups inputs = inputs_that_cancel();
  int rows = 0;
  const auto has_none = [](const Algorithm& row) { return row.order == Order::kNone; };
  for_each_row(has_none, [&](const Algorithm& row) {
    ++rows;
    EXPECT_GT(differences(reduced(row, inputs, 2)), 0) << row.id;
  });
  EXPECT_GT(rows, 0);
}

// Each of n - 1 roundings adds half a unit in the last place of what is summed so far, at most.
TEST(OrderTest, RingsRoundOncePerStep) {
  constexpr int kRanks = 5;
  constexpr double kHalfUnit = 1.0 / 256;  // of bfloat16, relative
  const Groups inputs = random_inputs(kRanks);
  for_each_row(is_ring, [&](const Algorithm& row) {
    const Elements sum = reduced(row, inputs, 1).front();
    const Elements once = reduced(rows_of(Collective::kAllReduce).front(), inputs, 1).front();
    int off = 0;
    for (std::size_t i = 0; i < kManyElements; ++i) {
      double exact = 0, magnitude = 0;
      for (const Elements& input : inputs) {
        exact += to_float(input[i]);
        magnitude += std::abs(to_float(input[i]));
      }
      EXPECT_LE(std::abs(to_float(sum[i]) - exact), (kRanks - 1) * kHalfUnit * magnitude) << row.id;
      off += sum[i] == once[i] ? 0 : 1;
    }
    EXPECT_GT(off, 0) << row.id << " never rounds otherwise than the rows in rank order";
  });
}

}  // namespace
}  // namespace tutti::test
