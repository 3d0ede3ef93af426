#include "executors/network/partitions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "unit/executors/network/programs.hpp"

namespace tutti::test {
namespace {

using Buffer = NetworkPlace::Buffer;
using Kind = NetworkStep::Kind;
using testing::ElementsAre;
using testing::HasSubstr;

PartitionRequest request_for(NetworkSchedule schedule, std::size_t count) {
  PartitionRequest request;
  request.schedule = schedule;
  request.shape.count = count;
  request.element_bytes = 4;
  request.chunk_bytes = 16;
  request.most_scratch_bytes = 1 << 20;
  return request;
}

// 10 elements that come in two parts, the second of which begins within a chunk, and go on as one.
NetworkProgram two_parts(const NetworkShape& /*shape*/) {
  NetworkProgram program;
  program.steps = {{Kind::kReceive, 1, 0, 5, {}, {Buffer::kOutput, 0}},
                   {Kind::kReceive, 1, 5, 5, {}, {Buffer::kOutput, 5}},
                   {Kind::kSend, 1, 0, 10, {{Buffer::kOutput, 0}}, {}, false, {0, 1}}};
  return program;
}

TEST(NetworkPartitionsTest, AChunkWaitsForWhatItOverlaps) {
  const auto made = make_partitions(request_for(two_parts, 10));
  ASSERT_TRUE(made.is_ok());
  const ChunkedProgram& program = made->last;
  // Chunks 0..3 and 4, 5..8 and 9, then 0..3, 4..7, 8 and 9.
  EXPECT_THAT(program.step_of, ElementsAre(0, 0, 1, 1, 2, 2, 2));
  EXPECT_THAT(program.waits_for, ElementsAre(0, 0, 0, 0, 1, 2, 2));
  EXPECT_THAT(program.dependents, ElementsAre(4, 5, 5, 6, 6));
  EXPECT_EQ(program.range_of(6).first, 8U);
  EXPECT_EQ(program.range_of(6).count, 2U);
  EXPECT_THAT(program.receives[1], ElementsAre(0, 1));
  EXPECT_EQ(program.bytes_from[1], 40 + 4 * cost_of_message(0));
}

TEST(NetworkPartitionsTest, ChunksAreMultiplesOfTheUnit) {
  PartitionRequest request = request_for(two_parts, 10);
  request.shape.unit = 3;
  EXPECT_EQ(make_partitions(request)->last.chunk_elements, 3U);
  request.shape.unit = 8;
  EXPECT_EQ(make_partitions(request)->last.chunk_elements, 8U);
}

TEST(NetworkPartitionsTest, RanksCutAlikeAndScratchFits) {
  for (const std::size_t count : {0, 1, 99, 100, 101, 12'345}) {
    PartitionRequest request = request_for(direct, count);
    request.shape.ranks = 3;
    request.shape.unit = 4;
    request.most_scratch_bytes = 400;
    const auto first = make_partitions(request);
    ASSERT_TRUE(first.is_ok());
    EXPECT_LE(first->last.scratch * 4, 400U);
    EXPECT_LE(first->full.scratch * 4, 400U);
    EXPECT_EQ(first->count > 1, count >= 99) << count;
    EXPECT_TRUE(first->count == 1 || first->elements % 4 == 0);
    EXPECT_GE(first->elements * first->count, count);
    for (request.shape.rank = 1; request.shape.rank < 3; ++request.shape.rank) {
      EXPECT_EQ(make_partitions(request)->elements, first->elements);
    }
  }
}

// Only rank 1 needs scratch, but all have to cut.
NetworkProgram uneven_scratch(const NetworkShape& shape) {
  NetworkProgram program;
  program.scratch = shape.rank == 1 ? shape.count : 0;
  return program;
}

// A rest of a few elements would take as many hops as the others.
TEST(NetworkPartitionsTest, PartitionsHaveOneLength) {
  for (const std::size_t count : {1'000'000, 1'000'004, 1'234'567}) {
    PartitionRequest request = request_for(direct, count);
    request.shape.ranks = 3;
    request.shape.unit = 4;
    request.most_scratch_bytes = 400'000;
    const NetworkPartitions made = take(make_partitions(request));
    ASSERT_GT(made.count, 5U);
    EXPECT_GE((count - (made.count - 1) * made.elements) * 100, made.elements * 99) << count;
  }
}

TEST(NetworkPartitionsTest, TheRankThatNeedsMostDecides) {
  PartitionRequest request = request_for(uneven_scratch, 1000);
  request.most_scratch_bytes = 1000;
  EXPECT_EQ(make_partitions(request)->count, 5U);  // 249 elements each
}

template <int what>
NetworkProgram broken(const NetworkShape& /*shape*/) {
  NetworkProgram program;
  program.steps = {{Kind::kSend, 1, 0, 1, {{Buffer::kInput, 0}}}};
  if (what == 0) program.steps[0].peer = 2;
  if (what == 1) program.steps[0].places.clear();
  if (what == 2) program.steps[0].after = {0};
  return program;
}

TEST(NetworkPartitionsTest, ProgramsThatCannotBeRun) {
  const auto failure = [](NetworkSchedule schedule) {
    return make_partitions(request_for(schedule, 1)).status().message();
  };
  EXPECT_THAT(failure(broken<0>), HasSubstr("has no peer"));
  EXPECT_THAT(failure(broken<1>), HasSubstr("number of places"));
  EXPECT_THAT(failure(broken<2>), HasSubstr("not before it"));
}

TEST(NetworkPartitionsTest, AreKept) {
  PartitionCache cache;
  std::vector<int> nodes = {0, 1};
  PartitionRequest request = request_for(ring, 100);
  request.shape.node_of = nodes;
  const auto first = *cache.find(request);
  EXPECT_EQ(*cache.find(request), first);
  nodes[1] = 0;  // the nodes themselves are compared
  const auto other = *cache.find(request);
  EXPECT_NE(other, first);
  request.shape.to = 1;  // a message to somebody else
  EXPECT_NE(*cache.find(request), other);
  request.shape.to = -1;
  request.shape.one_way = true;
  EXPECT_NE(*cache.find(request), other);
  request.shape.one_way = false;
  for (std::size_t count = 1; count <= 40; ++count) {
    EXPECT_TRUE(cache.find(request_for(ring, count)).is_ok());
  }
  EXPECT_NE(*cache.find(request), other);  // the oldest was given up
}

}  // namespace
}  // namespace tutti::test
