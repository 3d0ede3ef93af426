#include "model/simulate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>

#include "algorithms/all_reduce/network_ring.hpp"
#include "algorithms/all_reduce/network_ring_bidirectional.hpp"
#include "algorithms/network_steps.hpp"
#include "model/cluster_model.hpp"

namespace tutti::test {
namespace {

using model::ClusterModel;
using model::SimulatedOperation;
using model::SimulatedTime;
using testing::HasSubstr;

// 8 Gbit/s is a byte a nanosecond.
constexpr double kByteANanosecond = 8;

ClusterModel single_ranks(int nodes, double delay_us) {
  ClusterModel cluster;
  cluster.nodes = nodes;
  cluster.between.gbit_per_s = kByteANanosecond;
  cluster.between.delay_us = delay_us;
  return cluster;
}

SimulatedOperation bytes_by(NetworkSchedule schedule, std::size_t bytes) {
  SimulatedOperation operation;
  operation.schedule = schedule;
  operation.count = bytes;
  operation.element_bytes = 1;
  operation.chunk_bytes = 1000;
  return operation;
}

SimulatedTime time_of(const SimulatedOperation& operation, const ClusterModel& cluster) {
  const auto time = simulate(operation, cluster);
  EXPECT_TRUE(time.is_ok()) << time.status().message();
  return time.is_ok() ? *time : SimulatedTime{};
}

// Rank 0 sends all to the last rank.
NetworkProgram one_message(const NetworkShape& shape) {
  NetworkSteps steps(shape);
  if (shape.rank == 0) steps.send(shape.ranks - 1, {0, shape.count}, input_at(0));
  if (shape.rank == shape.ranks - 1) steps.receive(0, {0, shape.count}, output_at(0));
  return steps.take();
}

TEST(SimulateTest, AMessageTakesWhatItsPartsTake) {
  ClusterModel cluster = single_ranks(2, 5);
  EXPECT_DOUBLE_EQ(time_of(bytes_by(one_message, 1000), cluster).us, 1 + 5);
  cluster.between.payload_part = 0.5;
  cluster.between.message_bytes = 500;
  EXPECT_DOUBLE_EQ(time_of(bytes_by(one_message, 1000), cluster).us, 2.5 + 5);
  cluster.processor = {.start_us = 10, .send_us = 20, .receive_us = 40, .copy_gb_per_s = 0.01};
  const SimulatedTime time = time_of(bytes_by(one_message, 1000), cluster);
  EXPECT_DOUBLE_EQ(time.us, 10 + (20 + 100) + 2.5 + 5 + (40 + 100));
  EXPECT_DOUBLE_EQ(time.sent_bytes, 2500);
  EXPECT_DOUBLE_EQ(time.busy_part, 2.5 / time.us);
}

TEST(SimulateTest, ChunksFollowEachOtherOnALink) {
  ClusterModel cluster = single_ranks(2, 5);
  EXPECT_DOUBLE_EQ(time_of(bytes_by(one_message, 10'500), cluster).us, 10.5 + 5);
  // While one chunk is on its way, the next one is made ready: the slowest of the three counts.
  cluster.processor = {.send_us = 3, .receive_us = 2};
  EXPECT_DOUBLE_EQ(time_of(bytes_by(one_message, 10'000), cluster).us, 10 * 3 + 1 + 5 + 2);
}

TEST(SimulateTest, WithinANodeItsOwnLinkCounts) {
  ClusterModel cluster = single_ranks(1, 5);
  cluster.ranks_per_node = 2;
  cluster.within = {.gbit_per_s = 2 * kByteANanosecond, .delay_us = 1};
  const SimulatedTime time = time_of(bytes_by(one_message, 1000), cluster);
  EXPECT_DOUBLE_EQ(time.us, 0.5 + 1);
  EXPECT_EQ(time.sent_bytes, 0);
}

TEST(SimulateTest, ARankOfASlowRailSendsSlowly) {
  ClusterModel cluster = single_ranks(2, 5);
  cluster.rails = {0.5};
  EXPECT_DOUBLE_EQ(time_of(bytes_by(one_message, 1000), cluster).us, 2 + 5);
}

// Both ranks of the first node send to the rank at their place of the second one.
NetworkProgram to_the_next_node(const NetworkShape& shape) {
  NetworkSteps steps(shape);
  if (shape.rank < 2) steps.send(shape.rank + 2, {0, shape.count}, input_at(0));
  if (shape.rank >= 2) steps.receive(shape.rank - 2, {0, shape.count}, output_at(0));
  return steps.take();
}

TEST(SimulateTest, RanksOfOneRailShareIt) {
  ClusterModel cluster = single_ranks(2, 5);
  cluster.ranks_per_node = 2;
  cluster.within = cluster.between;
  EXPECT_DOUBLE_EQ(time_of(bytes_by(to_the_next_node, 1000), cluster).us, 1 + 5);
  cluster.rails = {1};
  EXPECT_DOUBLE_EQ(time_of(bytes_by(to_the_next_node, 1000), cluster).us, 2 + 5);
  cluster.rails = {1, 1};
  EXPECT_DOUBLE_EQ(time_of(bytes_by(to_the_next_node, 1000), cluster).us, 1 + 5);
}

TEST(SimulateTest, ABurstPassesAtOnce) {
  ClusterModel cluster = single_ranks(2, 5);
  cluster.between.burst_bytes = 3000;
  EXPECT_DOUBLE_EQ(time_of(bytes_by(one_message, 3000), cluster).us, 5);
  EXPECT_DOUBLE_EQ(time_of(bytes_by(one_message, 10'000), cluster).us, 7 + 5);
}

TEST(SimulateTest, SlotsAreUsedAgainAfterTheirCredit) {
  const ClusterModel cluster = single_ranks(2, 5);
  SimulatedOperation operation = bytes_by(one_message, 10'000);
  operation.slots = 1;
  EXPECT_DOUBLE_EQ(time_of(operation, cluster).us, 10 * (1 + 5) + 9 * 5);
  operation.slots = 2;
  EXPECT_DOUBLE_EQ(time_of(operation, cluster).us, 4 * (1 + 5 + 5) + 2 + 5);
  operation.slots = 11;
  EXPECT_DOUBLE_EQ(time_of(operation, cluster).us, 10 + 5);
}

NetworkProgram all_to_the_first(const NetworkShape& shape) {
  NetworkSteps steps(shape);
  const Range all{0, shape.count};
  if (shape.rank != 0) steps.send(0, all, input_at(0));
  for (int peer = 1; shape.rank == 0 && peer < shape.ranks; ++peer) {
    steps.receive(peer, all, output_at(0));
  }
  return steps.take();
}

TEST(SimulateTest, SendersShareTheWayInOfTheirPeer) {
  const SimulatedTime time = time_of(bytes_by(all_to_the_first, 4000), single_ranks(9, 5));
  EXPECT_DOUBLE_EQ(time.us, 8 * 4 + 5);
  EXPECT_DOUBLE_EQ(time.sent_bytes, 8 * 4000);
  EXPECT_DOUBLE_EQ(time.busy_part, 32.0 / 37);
}

NetworkProgram own_sum(const NetworkShape& shape) {
  NetworkSteps steps(shape);
  steps.sum({0, shape.count}, {input_at(0), input_at(0), input_at(0)}, output_at(0));
  return steps.take();
}

TEST(SimulateTest, SumsTakeAProcessorWhichRanksMayShare) {
  ClusterModel cluster = single_ranks(6, 5);
  cluster.processor.sum_gb_per_s = 1;
  EXPECT_DOUBLE_EQ(time_of(bytes_by(own_sum, 4000), cluster).us, 2 * 4);  // two are added to one
  cluster.processor.shared = 2;
  EXPECT_DOUBLE_EQ(time_of(bytes_by(own_sum, 4000), cluster).us, 2 * 4 * 3);
  cluster.processor.shared = 0;
  cluster.processor.local_us = 10;
  EXPECT_DOUBLE_EQ(time_of(bytes_by(own_sum, 4000), cluster).us, (2 + 10) * 4);
}

// Rank 0 sends all to rank 1, which sends it on.
NetworkProgram passed_on(const NetworkShape& shape) {
  NetworkSteps steps(shape);
  const Range all{0, shape.count};
  if (shape.rank == 0) steps.send(1, all, input_at(0));
  if (shape.rank > 0) steps.receive(shape.rank - 1, all, output_at(0));
  if (shape.rank == 1) steps.send(2, all, output_at(0), {0});
  return steps.take();
}

// Chunks are sent on while the processor receives later ones.
TEST(SimulateTest, WhatCostsNothingWaitsForNoProcessor) {
  ClusterModel cluster = single_ranks(3, 5);
  cluster.processor.receive_us = 7;
  EXPECT_DOUBLE_EQ(time_of(bytes_by(passed_on, 10'000), cluster).us, 6 + 10 * 7 + 6 + 7);
}

TEST(SimulateTest, ARingTakesItsBytesOrItsHops) {
  constexpr int kRanks = 8, kHops = 2 * (kRanks - 1);
  const auto ring = AllReduceNetworkRing::program;
  const auto both_ways = AllReduceNetworkRingBidirectional::program;
  constexpr std::size_t kMuch = 8'000'000;
  const double bytes_us = kMuch / 1e3 * kHops / kRanks;
  const double large = time_of(bytes_by(ring, kMuch), single_ranks(kRanks, 5)).us;
  EXPECT_DOUBLE_EQ(large, bytes_us + 5);  // a step waits for nothing that is not there yet
  EXPECT_DOUBLE_EQ(time_of(bytes_by(ring, 8), single_ranks(kRanks, 5)).us, kHops * 5.001);
  EXPECT_NEAR(time_of(bytes_by(both_ways, 8), single_ranks(kRanks, 5)).us, 8 * 5.0, 0.02);
}

// As one_message, where rank 0 waits for an answer before its part of a partition is done.
NetworkProgram answered_message(const NetworkShape& shape) {
  NetworkSteps steps(shape);
  const Range all{0, shape.count};
  const int peer = 1 - shape.rank;
  const int before =
      shape.rank == 0 ? steps.send(peer, all, input_at(0)) : steps.receive(peer, all, output_at(0));
  if (shape.rank == 0) steps.receive(peer, all, output_at(0), {before});
  if (shape.rank == 1) steps.send(peer, all, output_at(0), {before});
  steps.take_scratch(1, shape.count);
  return steps.take();
}

TEST(SimulateTest, TwoPartitionsAreOpenAtATime) {
  SimulatedOperation operation = bytes_by(answered_message, 3999);
  const ClusterModel cluster = single_ranks(2, 50);
  EXPECT_DOUBLE_EQ(time_of(operation, cluster).us, 2 * 50 + 4 + 0.999);
  operation.most_scratch_bytes = 1000;  // 4 partitions of 800 bytes, and one of 799
  EXPECT_DOUBLE_EQ(time_of(operation, cluster).us, 3 * 2 * 50 + 2 * 2 * 0.8 + 2 * 0.799);
  EXPECT_DOUBLE_EQ(time_of(operation, cluster).sent_bytes, 3999);
}

NetworkProgram nobody_receives(const NetworkShape& shape) {
  NetworkSteps steps(shape);
  steps.send((shape.rank + 1) % shape.ranks, {0, shape.count}, input_at(0));
  if (shape.rank == 0) steps.receive(shape.ranks - 1, {0, shape.count}, output_at(0));
  return steps.take();
}
// Each waits for the other before it sends.
NetworkProgram waits_for_ever(const NetworkShape& shape) {
  NetworkSteps steps(shape);
  const int peer = 1 - shape.rank;
  const int came = steps.receive(peer, {0, shape.count}, output_at(0));
  steps.send(peer, {0, shape.count}, input_at(0), {came});
  return steps.take();
}

std::string refusal(const SimulatedOperation& operation, const ClusterModel& cluster) {
  const auto time = simulate(operation, cluster);
  EXPECT_FALSE(time.is_ok());
  EXPECT_EQ(time.status().code(), StatusCode::kInvalidArgument);
  return time.is_ok() ? "" : time.status().message();
}

TEST(SimulateTest, WhatHasNoEndIsRefused) {
  const ClusterModel cluster = single_ranks(2, 5);
  EXPECT_THAT(refusal(bytes_by(nobody_receives, 10), cluster), HasSubstr("ranks 0 and 1"));
  EXPECT_THAT(refusal(bytes_by(waits_for_ever, 10), cluster),
              HasSubstr("rank 0 in step 0 for rank 1"));
}

TEST(SimulateTest, ClustersThatCannotBeAreRefused) {
  const SimulatedOperation operation = bytes_by(one_message, 10);
  EXPECT_THAT(refusal(operation, single_ranks(1, 5)), HasSubstr("2 ranks or more"));
  EXPECT_THAT(refusal(operation, ClusterModel{}), HasSubstr("rate of the link between nodes"));
  ClusterModel cluster = single_ranks(2, -1);
  EXPECT_THAT(refusal(operation, cluster), HasSubstr("-1"));
  cluster = single_ranks(2, std::nan(""));
  EXPECT_THAT(refusal(operation, cluster), HasSubstr("nan"));
  cluster = single_ranks(2, 5);
  cluster.between.payload_part = 1.5;
  EXPECT_THAT(refusal(operation, cluster), HasSubstr("1.5"));
  cluster = single_ranks(2, 5);
  cluster.ranks_per_node = 2;
  EXPECT_THAT(refusal(operation, cluster), HasSubstr("rate of the link within nodes"));
  cluster = single_ranks(2, 5);
  cluster.rails = {1, 0};
  EXPECT_THAT(refusal(operation, cluster), HasSubstr("rail"));
  cluster = single_ranks(2, 5);
  cluster.processor.send_us = std::numeric_limits<double>::infinity();
  EXPECT_THAT(refusal(operation, cluster), HasSubstr("processor"));
}

TEST(SimulateTest, OperationsThatCannotBeAreRefused) {
  const ClusterModel cluster = single_ranks(2, 5);
  EXPECT_THAT(refusal(bytes_by(nullptr, 10), cluster), HasSubstr("no program"));
  SimulatedOperation operation = bytes_by(one_message, 10);
  operation.root = 2;
  EXPECT_THAT(refusal(operation, cluster), HasSubstr("rank 2 of 2"));
  operation = bytes_by(one_message, 10);
  operation.slots = -1;
  EXPECT_THAT(refusal(operation, cluster), HasSubstr("-1 slots"));
  operation = bytes_by(one_message, 10);
  operation.chunk_bytes = 0;
  EXPECT_THAT(refusal(operation, cluster), HasSubstr("a byte or more"));
}

}  // namespace
}  // namespace tutti::test
