// Folded simulations have the times of unfolded ones, to the last bit.
#include "model/fold.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "algorithms/all_reduce/hierarchical.hpp"
#include "algorithms/all_reduce/network_direct.hpp"
#include "algorithms/all_reduce/network_doubling.hpp"
#include "algorithms/all_reduce/network_one_shot.hpp"
#include "algorithms/all_reduce/network_ring.hpp"
#include "algorithms/all_reduce/network_ring_bidirectional.hpp"
#include "algorithms/broadcast/network_ring.hpp"
#include "algorithms/broadcast/network_tree.hpp"
#include "algorithms/network_steps.hpp"
#include "model/simulation.hpp"

namespace tutti::test {
namespace {

using model::ClusterModel;
using model::ClusterProgram;
using model::Fold;
using model::FoldedRank;
using model::Folding;
using model::SimulatedOperation;
using model::SimulatedTime;
using model::Simulation;

// Links, processors and delays whose times meet at many moments.
ClusterModel cluster_of(int nodes, int ranks_per_node) {
  ClusterModel cluster;
  cluster.nodes = nodes;
  cluster.ranks_per_node = ranks_per_node;
  cluster.between = {.gbit_per_s = 8, .delay_us = 2, .message_bytes = 100};
  cluster.within = {.gbit_per_s = 64, .delay_us = 1};
  cluster.processor = {
      .start_us = 1, .send_us = 0.5, .receive_us = 0.25, .copy_gb_per_s = 16, .sum_gb_per_s = 8};
  return cluster;
}

SimulatedOperation floats_by(NetworkSchedule schedule, std::size_t count) {
  SimulatedOperation operation;
  operation.schedule = schedule;
  operation.count = count;
  operation.unit = 4;
  operation.chunk_bytes = 1024;
  operation.most_scratch_bytes = 128 * 1024;
  return operation;
}

struct Both {
  SimulatedTime folded, unfolded;
};
Both both_of(const SimulatedOperation& operation, const ClusterModel& cluster) {
  const auto folded = simulate(operation, cluster);
  const auto unfolded = simulate(operation, cluster, Folding::kNever);
  EXPECT_TRUE(folded.is_ok()) << folded.status().message();
  EXPECT_TRUE(unfolded.is_ok()) << unfolded.status().message();
  if (!folded.is_ok() || !unfolded.is_ok()) return {};
  EXPECT_EQ(unfolded->simulated_ranks, cluster.ranks());
  EXPECT_EQ(folded->us, unfolded->us);
  EXPECT_EQ(folded->sent_bytes, unfolded->sent_bytes);
  EXPECT_EQ(folded->busy_part, unfolded->busy_part);
  EXPECT_FALSE(folded->is_approximate);
  return {*folded, *unfolded};
}
int folded_ranks(const SimulatedOperation& operation, const ClusterModel& cluster) {
  return both_of(operation, cluster).folded.simulated_ranks;
}

constexpr auto kRing = AllReduceNetworkRing::program;
constexpr auto kBothWays = AllReduceNetworkRingBidirectional::program;
constexpr auto kDirect = AllReduceNetworkDirect::program;
constexpr auto kOneShot = AllReduceNetworkOneShot::program;
constexpr auto kDoubling = AllReduceNetworkDoubling::program;
constexpr auto kHierarchical = AllReduceHierarchical::program;
constexpr auto kTree = BroadcastNetworkTree::program;

TEST(FoldTest, RanksOfARingAreOne) {
  EXPECT_EQ(folded_ranks(floats_by(kRing, 4800), cluster_of(24, 1)), 1);
  EXPECT_EQ(folded_ranks(floats_by(kBothWays, 4800), cluster_of(24, 1)), 1);
  EXPECT_EQ(folded_ranks(floats_by(kBothWays, 5600), cluster_of(7, 1)), 1);
  EXPECT_EQ(folded_ranks(floats_by(kRing, 4800), cluster_of(6, 4)), 4);
}

TEST(FoldTest, RanksThatSendToAllAreOne) {
  for (const auto schedule : {kDirect, kOneShot}) {
    EXPECT_EQ(folded_ranks(floats_by(schedule, 4800), cluster_of(24, 1)), 1);
    EXPECT_LE(folded_ranks(floats_by(schedule, 4800), cluster_of(6, 4)), 4);
  }
}

TEST(FoldTest, RanksOfDoublingAreAsManyAsTheirPlaces) {
  EXPECT_EQ(folded_ranks(floats_by(kDoubling, 5000), cluster_of(32, 1)), 1);
  EXPECT_EQ(folded_ranks(floats_by(kDoubling, 5000), cluster_of(8, 4)), 1);
  EXPECT_LT(folded_ranks(floats_by(kDoubling, 5000), cluster_of(24, 1)), 24);
  both_of(floats_by(kDoubling, 5000), cluster_of(10, 3));
}

// Where its shares are chunks. Longer ones make nodes differ: each begins with another part.
TEST(FoldTest, HierarchicalIsANode) {
  EXPECT_LE(folded_ranks(floats_by(kHierarchical, 960), cluster_of(12, 4)), 4);
  EXPECT_EQ(folded_ranks(floats_by(kHierarchical, 3840), cluster_of(12, 4)), 12 * 4);
  both_of(floats_by(kHierarchical, 100'000), cluster_of(5, 4));  // in partitions
}

// Every rank of a tree is another child of another parent.
TEST(FoldTest, RanksOfATreeAreNotAlike) {
  EXPECT_EQ(folded_ranks(floats_by(kTree, 5000), cluster_of(32, 1)), 32);
  EXPECT_EQ(folded_ranks(floats_by(BroadcastNetworkRing::program, 5000), cluster_of(9, 1)), 9);
}

// Four pairs, two of which begin at a rank that sends twice.
NetworkProgram pairs(const NetworkShape& shape) {
  NetworkSteps steps(shape);
  const Range all{0, shape.count};
  const int pair = shape.rank / 2, messages = pair < 2 ? 2 : 1;
  for (int k = 0; k < messages; ++k) {
    if (shape.rank % 2 == 0) steps.send(shape.rank + 1, all, input_at(0));
    if (shape.rank % 2 == 1) steps.receive(shape.rank - 1, all, output_at(0));
  }
  return steps.take();
}

TEST(FoldTest, RanksAreAlikeIfTheirPeersAre) {
  EXPECT_EQ(folded_ranks(floats_by(pairs, 1000), cluster_of(8, 1)), 4);
}

TEST(FoldTest, SharesOfDifferentLengthsAreNotAlike) {
  for (const auto schedule : {kRing, kBothWays, kDirect, kOneShot, kDoubling}) {
    both_of(floats_by(schedule, 5003), cluster_of(12, 1));
    both_of(floats_by(schedule, 11), cluster_of(6, 2));
  }
  both_of(floats_by(kHierarchical, 5003), cluster_of(6, 3));
}

TEST(FoldTest, RailsAreSharedByRanksOfANode) {
  ClusterModel cluster = cluster_of(6, 4);
  cluster.rails = {1, 1, 0.5};
  for (const auto schedule : {kRing, kDirect, kDoubling, kHierarchical, kTree}) {
    both_of(floats_by(schedule, 4800), cluster);
  }
  EXPECT_EQ(folded_ranks(floats_by(kRing, 4800), cluster), 4);
}

TEST(FoldTest, SlotsAndBurstsAreFolded) {
  SimulatedOperation operation = floats_by(kBothWays, 24'000);
  operation.slots = 2;
  ClusterModel cluster = cluster_of(12, 2);
  cluster.between.burst_bytes = 3000;
  EXPECT_EQ(folded_ranks(operation, cluster), 2);
  operation.schedule = kDirect;
  EXPECT_LE(folded_ranks(operation, cluster), 2);
}

// Where nothing takes time but bytes, most events are at one time.
TEST(FoldTest, WithoutDelaysEverythingIsAtOneTime) {
  ClusterModel cluster = cluster_of(8, 2);
  cluster.processor = {};
  cluster.between = cluster.within = {.gbit_per_s = 8};
  cluster.rails = {1};
  for (const auto schedule : {kRing, kBothWays, kDirect, kDoubling, kHierarchical, kTree}) {
    both_of(floats_by(schedule, 6400), cluster);
    both_of(floats_by(schedule, 0), cluster);
  }
}

// The time of a program on all ranks, and of the other one of its forms on the first node.
struct Forms {
  SimulatedTime exact, alike;
};
Forms forms_of(const SimulatedOperation& operation, const ClusterModel& cluster) {
  const auto exact = simulate(operation, cluster, Folding::kNever);
  const auto program = ClusterProgram::make(operation, cluster, ClusterProgram::Form::kAlike);
  EXPECT_TRUE(exact.is_ok() && program.is_ok());
  if (!exact.is_ok() || !program.is_ok()) return {};
  const auto fold = folded_to_a_node(**program);
  EXPECT_TRUE(fold.is_ok() && fold->has_value());
  if (!fold.is_ok() || !fold->has_value()) return {};
  const auto alike = Simulation(**program, **fold, 0).run();
  EXPECT_TRUE(alike.is_ok());
  return alike.is_ok() ? Forms{*exact, *alike} : Forms{};
}

TEST(FoldTest, WhatIsMadeAlikeTakesNearlyAsLong) {
  const std::vector<NetworkSchedule> schedules = {kRing, kBothWays, kDirect, kHierarchical};
  for (const auto schedule : schedules) {
    for (const std::size_t count : {std::size_t{20'003}, std::size_t{38'400}}) {
      const auto [exact, alike] = forms_of(floats_by(schedule, count), cluster_of(12, 3));
      EXPECT_EQ(alike.simulated_ranks, 3);
      EXPECT_TRUE(alike.is_approximate);
      EXPECT_NEAR(alike.us / exact.us, 1, 0.08);
      EXPECT_NEAR(alike.padded_part, 0, 0.008);
    }
  }
}

TEST(FoldTest, ANodeStandsForThoseThatLieAsFarOrDifferInTheSameBits) {
  for (const auto schedule : {kRing, kDirect, kDoubling}) {
    const SimulatedOperation operation = floats_by(schedule, 6400);
    const ClusterModel cluster = cluster_of(16, 2);
    const auto program = ClusterProgram::make(operation, cluster, ClusterProgram::Form::kExact);
    ASSERT_TRUE(program.is_ok());
    const auto fold = folded_to_a_node(**program);
    ASSERT_TRUE(fold.is_ok() && fold->has_value());
    EXPECT_EQ((*fold)->size(), 2U);
    const auto folded = Simulation(**program, **fold, 0).run();
    ASSERT_TRUE(folded.is_ok());
    EXPECT_EQ(folded->us, simulate(operation, cluster, Folding::kNever)->us);
  }
}

// What a fold to the first node would give, whatever the others do.
Fold forced_to_a_node(ClusterProgram& program) {
  const auto all = unfolded(program);
  EXPECT_TRUE(all.is_ok());
  const int nodes = program.cluster().nodes, per_node = program.cluster().ranks_per_node;
  Fold fold(all->begin(), all->begin() + per_node);
  for (FoldedRank& one : fold) {
    for (model::FoldedPeer& peer : one.peers) {
      const int away = peer.rank / per_node;
      const int self = (nodes - away) % nodes * per_node + one.rank;
      peer.rank %= per_node;
      const auto& theirs = (*all)[static_cast<std::size_t>(peer.rank)].behaviour.peers;
      const auto found = std::find(theirs.begin(), theirs.end(), self);
      peer.number = static_cast<int>(found - theirs.begin());
    }
  }
  return fold;
}

// Each sends to the next one; those of the fourth node add something up before.
NetworkProgram late_node(const NetworkShape& shape) {
  NetworkSteps steps(shape);
  const Range all{0, shape.count};
  const bool is_late = shape.node_of[static_cast<std::size_t>(shape.rank)] == 3;
  const int before = is_late ? steps.sum(all, {input_at(0), input_at(0)}, output_at(0)) : kNoStep;
  steps.send((shape.rank + 1) % shape.ranks, all, input_at(0), {before});
  steps.receive((shape.rank + shape.ranks - 1) % shape.ranks, all, output_at(0), {before});
  return steps.take();
}

TEST(FoldTest, AWrongFoldHasAnotherTimeOrNone) {
  const ClusterModel cluster = cluster_of(12, 4);
  const auto forced = [&](NetworkSchedule schedule, std::size_t count) {
    const auto program =
        ClusterProgram::make(floats_by(schedule, count), cluster, ClusterProgram::Form::kExact);
    EXPECT_TRUE(program.is_ok());
    const Fold fold = forced_to_a_node(**program);
    return Simulation(**program, fold, 0).run();
  };
  const auto right = [&](NetworkSchedule schedule, std::size_t count) {
    return simulate(floats_by(schedule, count), cluster, Folding::kNever)->us;
  };
  EXPECT_EQ(forced(kRing, 4800)->us, right(kRing, 4800));
  EXPECT_LT(forced(late_node, 4800)->us, right(late_node, 4800));
  both_of(floats_by(late_node, 4800), cluster);
  // The last share is shorter: what one sends is not what the other one receives.
  const auto shorter = forced(kRing, 4790);
  ASSERT_FALSE(shorter.is_ok());
  EXPECT_EQ(shorter.status().code(), StatusCode::kInvalidArgument);
}

TEST(FoldTest, PeersThatAreMixedUpAreFound) {
  const auto program =
      ClusterProgram::make(floats_by(kTree, 5000), cluster_of(8, 1), ClusterProgram::Form::kExact);
  ASSERT_TRUE(program.is_ok());
  auto fold = folded_by_classes(**program);
  ASSERT_TRUE(fold.is_ok());
  std::swap((*fold)[0].peers[0], (*fold)[0].peers[2]);
  const auto time = Simulation(**program, *fold, 0).run();
  EXPECT_TRUE(!time.is_ok() || time->us != simulate(floats_by(kTree, 5000), cluster_of(8, 1))->us);
}

TEST(FoldTest, LongProgramsOfRanksThatDifferAreRefused) {
  SimulatedOperation operation = floats_by(
      [](const NetworkShape& shape) {
        NetworkSteps steps(shape);
        const int peer = shape.rank ^ 1;
        for (int k = 0; k < 1000 + shape.rank / 2; ++k) {
          steps.send(peer, {0, shape.count}, input_at(0));
          steps.receive(peer, {0, shape.count}, output_at(0));
        }
        return steps.take();
      },
      1000);
  const auto time = simulate(operation, cluster_of(4096, 1));
  ASSERT_FALSE(time.is_ok());
  EXPECT_EQ(time.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(time.status().message(), testing::HasSubstr("4096 ranks do not behave alike"));
}

TEST(FoldTest, ManyRanksCostNoMoreThanAFew) {
  const auto ring = simulate(floats_by(kBothWays, 4 * 2048), cluster_of(2048, 1));
  ASSERT_TRUE(ring.is_ok());
  EXPECT_EQ(ring->simulated_ranks, 1);
  const auto pairs_in_turn = simulate(floats_by(kDoubling, 1000), cluster_of(512, 4));
  ASSERT_TRUE(pairs_in_turn.is_ok());
  EXPECT_LE(pairs_in_turn->simulated_ranks, 4);
}

// Ranks 0 and 3 add something up, and send a message that takes no time. It comes at the moment at
// which their peers have added up as much, and may go on: these have the greater rank once, and the
// smaller one once.
NetworkProgram message_without_time(const NetworkShape& shape) {
  NetworkSteps steps(shape);
  const Range all{0, shape.count};
  const int peer = shape.rank ^ 1;
  const bool begins = shape.rank == 0 || shape.rank == 3;
  const int came =
      steps.add_always(begins ? NetworkStep{.kind = NetworkStep::Kind::kCopy}
                              : NetworkStep{.kind = NetworkStep::Kind::kReceive, .peer = peer});
  const int added = steps.sum(all, {input_at(0), input_at(0)}, output_at(0));
  if (begins) {
    steps.add_always({.kind = NetworkStep::Kind::kSend, .peer = peer, .after = {added}});
    steps.receive(peer, all, output_at(0));
  } else {
    steps.send(peer, all, input_at(0), {came});
    steps.sum(all, {input_at(0), input_at(0)}, output_at(0), {added});
  }
  return steps.take();
}

TEST(FoldTest, WhichOfTwoEventsIsFirstDoesNotDependOnRanks) {
  ClusterModel cluster = cluster_of(4, 1);
  cluster.between = {.gbit_per_s = 8};
  cluster.processor = {.receive_us = 1, .sum_gb_per_s = 1};
  EXPECT_EQ(folded_ranks(floats_by(message_without_time, 250), cluster), 2);
}

TEST(FoldTest, SharedProcessorsAreNotFolded) {
  ClusterModel cluster = cluster_of(6, 1);
  cluster.processor.shared = 2;
  EXPECT_EQ(folded_ranks(floats_by(kRing, 4800), cluster), 6);
}

}  // namespace
}  // namespace tutti::test
