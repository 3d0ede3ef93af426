// Programs of the network: complete, each input once, in the promised order, without races and
// without a chunk that waits for ever. In place and not.
#include "algorithms/network_program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/all_reduce/network_tree.hpp"
#include "algorithms/ring.hpp"
#include "algorithms/ring_schedule.hpp"
#include "support/network_world.hpp"
#include "support/sanitizers.hpp"

namespace tutti::test {
namespace {

std::vector<const Algorithm*> network_rows() {
  std::vector<const Algorithm*> rows;
  for (const Algorithm& row : catalogue()) {
    if (row.network != nullptr) rows.push_back(&row);
  }
  return rows;
}

// Nodes of so many ranks each, which lie one behind the other or by turns.
std::vector<int> nodes_of(int ranks, int per_node, bool by_turns) {
  std::vector<int> nodes;
  for (int rank = 0; rank < ranks; ++rank) {
    nodes.push_back(by_turns ? rank % (ranks / per_node) : rank / per_node);
  }
  return nodes;
}

NetworkTrial trial_of(const Algorithm& row, int ranks, std::size_t count, std::size_t unit = 1) {
  NetworkTrial trial{.row = &row, .shape = {.ranks = ranks, .count = count, .unit = unit}};
  if (row.collective == Collective::kBarrier) trial.shape.count = 0;
  if (has_pieces(row.collective)) trial.shape.stride = count + unit;
  if (row.collective == Collective::kSendRecv) trial.shape.to = ranks - 1;
  trial.chunk = unit;
  return trial;
}

void expect_right(NetworkTrial trial, std::uint64_t seed) {
  for (const bool in_place : {false, true}) {
    trial.in_place = in_place;
    EXPECT_EQ(check_network(trial, seed), "");
  }
}

TEST(NetworkPrograms, OfEveryNumberOfRanks) {
  for (const Algorithm* row : network_rows()) {
    for (int ranks = 1; ranks <= (kSanitizer ? 12 : 24); ++ranks) {
      NetworkTrial trial = trial_of(*row, ranks, static_cast<std::size_t>(ranks) + 3);
      if (has_root(row->collective) || is_pairwise(row->collective)) trial.shape.root = ranks / 3;
      trial.chunk = 2;
      trial.in_place = ranks % 2 == 0;
      trial.shape.one_way = ranks % 4 >= 2;
      const auto seed = static_cast<std::uint64_t>(ranks);
      if (ranks <= 9) {
        expect_right(trial, seed);
      } else {
        EXPECT_EQ(check_network(trial, seed), "");
      }
    }
  }
}

// With each root, if there is one.
void expect_right_with_roots(NetworkTrial trial, std::uint64_t seed) {
  const int roots = has_root(trial.row->collective) ? trial.shape.ranks : 1;
  for (trial.shape.root = 0; trial.shape.root < roots; ++trial.shape.root) {
    expect_right(trial, seed);
  }
}

TEST(NetworkPrograms, OfCountsThatDoNotFit) {
  for (const Algorithm* row : network_rows()) {
    for (const int ranks : {2, 3, 5, 8}) {
      for (const std::size_t count : {0u, 1u, 2u, 7u, 31u, 64u}) {
        for (const std::size_t unit : {1u, 4u}) {
          NetworkTrial trial = trial_of(*row, ranks, count, unit);
          trial.chunk = unit * (1 + count % 3);
          trial.shape.one_way = unit > 1;
          expect_right_with_roots(trial, count);
        }
      }
    }
  }
}

TEST(NetworkPrograms, OfNodes) {
  const Algorithm* const row = *find_algorithm(Collective::kAllReduce, "hierarchical");
  for (const auto& [nodes, per_node] : {std::pair(2, 2), {2, 3}, {3, 4}, {4, 1}, {1, 3}, {5, 2}}) {
    for (const bool by_turns : {false, true}) {
      const auto node_of = nodes_of(nodes * per_node, per_node, by_turns);
      for (const std::size_t count : {0u, 1u, 5u, 37u}) {
        NetworkTrial trial = trial_of(*row, nodes * per_node, count);
        trial.shape.node_of = node_of;
        trial.shape.one_way = by_turns;
        for (const std::size_t chunk : {1u, 3u, 64u}) {
          trial.chunk = chunk;
          expect_right(trial, count);
        }
      }
    }
  }
}

TEST(NetworkPrograms, RingsAndTreesOfManyRanks) {
  for (const Algorithm* row : network_rows()) {
    const bool is_ring = row->name().find("ring") != std::string_view::npos;
    if (!is_ring && row->id != AllReduceNetworkTree::kAlgorithm.id) continue;
    for (const int ranks : {37, 128}) {
      if (kSanitizer && ranks > 37) continue;
      NetworkTrial trial = trial_of(*row, ranks, has_pieces(row->collective) ? 1 : 130);
      trial.in_place = true;
      EXPECT_EQ(check_network(trial, 1), "");
    }
  }
}

// Without one of its orders a program has a race, or a meeting misses a rank; or other orders imply
// that one. Nothing waits without a reason.
struct Omissions {
  int found = 0, implied = 0;
  std::vector<std::string> idle;
};

bool is_found(NetworkTrial trial, int rank, std::vector<NetworkProgram>& programs) {
  if (trial.row->collective == Collective::kBarrier) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      if (!wrong_in(trial, programs, seed).empty()) return true;
    }
    return false;
  }
  for (const bool in_place : {false, true}) {
    trial.in_place = in_place;
    if (!race_of(trial, rank, programs[static_cast<std::size_t>(rank)]).empty()) return true;
  }
  return false;
}

void omit_each(const NetworkTrial& trial, Omissions& omissions) {
  std::vector<NetworkProgram> programs;
  for (int rank = 0; rank < trial.shape.ranks; ++rank) programs.push_back(trial.program(rank));
  for (int rank = 0; rank < trial.shape.ranks; ++rank) {
    NetworkProgram& program = programs[static_cast<std::size_t>(rank)];
    const NetworkOrder complete(program, trial.chunk);
    for (std::size_t step = 0; step < program.steps.size(); ++step) {
      std::vector<int>& after = program.steps[step].after;
      const std::vector<int> all = after;
      for (std::size_t entry = 0; entry < all.size(); ++entry) {
        after.erase(after.begin() + static_cast<std::ptrdiff_t>(entry));
        if (NetworkOrder(program, trial.chunk) == complete) {
          ++omissions.implied;
        } else if (is_found(trial, rank, programs)) {
          ++omissions.found;
        } else {
          omissions.idle.push_back(trial.text() + ": rank " + std::to_string(rank) + ", step " +
                                   std::to_string(step) + " after " + std::to_string(all[entry]));
        }
        after = all;
      }
    }
  }
}

TEST(NetworkPrograms, EveryOrderThatIsOmittedIsFound) {
  for (const Algorithm* row : network_rows()) {
    Omissions omissions;
    for (int ranks = 2; ranks <= 8; ++ranks) {
      // Of other numbers, ranks hear of some others twice.
      if (row->collective == Collective::kBarrier && !std::has_single_bit(0u + ranks)) continue;
      NetworkTrial trial = trial_of(*row, ranks, has_pieces(row->collective) ? 3 : 16);
      const auto nodes = nodes_of(ranks, 2, false);
      if (ranks % 2 == 0) trial.shape.node_of = nodes;
      trial.shape.one_way = ranks == 3 || ranks == 6;
      trial.chunk = 2;
      omit_each(trial, omissions);
    }
    EXPECT_THAT(omissions.idle, testing::IsEmpty());
    const bool one_step =
        row->collective == Collective::kAllToAll || row->collective == Collective::kGather ||
        row->collective == Collective::kScatter || row->collective == Collective::kSendRecv ||
        row->id == "all_gather/network_direct";
    EXPECT_EQ(omissions.found > 0, !one_step) << row->id;
  }
}

// A tree holds all ranks, each at most `levels` below the root; between them, both trees give no
// rank children twice.
void expect_trees(int ranks) {
  using Tree = AllReduceNetworkTree::Tree;
  std::vector<int> inner_in(static_cast<std::size_t>(ranks));
  for (const bool second : {false, true}) {
    const Tree tree{ranks, second};
    int roots = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const int place = tree.place_of(rank);
      ASSERT_TRUE(1 <= place && place <= ranks) << ranks;
      EXPECT_EQ(tree.rank_at(place), rank) << ranks;
      const int parent = tree.parent(place);
      if (parent == Tree::kNobody) {
        ++roots;
      } else {
        const int back = parent > place ? tree.left(parent) : tree.right(parent);
        EXPECT_EQ(back, place) << ranks;
      }
      if (tree.left(place) != Tree::kNobody || tree.right(place) != Tree::kNobody) {
        ++inner_in[static_cast<std::size_t>(rank)];
      }
      int levels = 0;
      for (int at = place; tree.parent(at) != Tree::kNobody; at = tree.parent(at)) ++levels;
      EXPECT_LE(levels, std::bit_width(0U + ranks) - 1) << ranks;
    }
    EXPECT_EQ(roots, 1) << ranks;
  }
  EXPECT_THAT(inner_in, testing::Each(testing::Le(1))) << ranks;
}

TEST(NetworkTrees, ShareTheWorkForEveryNumberOfRanks) {
  for (int ranks = 1; ranks <= 128; ++ranks) {
    expect_trees(ranks);
    NetworkTrial trial = trial_of(AllReduceNetworkTree::kAlgorithm, ranks, 5);
    EXPECT_EQ(check_network(trial, 1), "");  // of fewer elements than ranks
  }
}

// What a member of a ring sends and has at the end, by formulas alone.
constexpr int kMostMembers = 128;
constexpr bool is_complete(int members, int m, bool both_ways) {
  const RingMember member(members, m, both_ways);
  const RingMember before(members, on_ring(m - 1, members), both_ways);
  const RingMember next(members, on_ring(m + 1, members), both_ways);
  int added[kMostMembers] = {}, has[kMostMembers] = {};  // times, by share
  has[m] = 1;
  for (int s = 0; s < member.steps.forward; ++s) {
    ++added[member.add_forward(s)];
    ++has[member.send_forward(s + 1)];
    if (before.add_forward(s) != member.add_forward(s + 1)) return false;
    if (before.send_forward(s) != member.send_forward(s + 1)) return false;
  }
  for (int s = 0; s < member.steps.reverse; ++s) {
    ++added[member.add_reverse(s)];
    ++has[member.send_reverse(s + 1)];
    if (next.add_reverse(s) != member.add_reverse(s + 1)) return false;
    if (next.send_reverse(s) != member.send_reverse(s + 1)) return false;
  }
  // Every share but the own one is sent once, with this member's part; all are there at the end.
  for (int share = 0; share < members; ++share) {
    if (added[share] != (share == m ? 0 : 1) || has[share] != 1) return false;
  }
  const RingSteps last = member.steps;
  return member.add_forward(last.forward) == m &&
         (last.reverse == 0 || member.add_reverse(last.reverse) == m);
}
constexpr bool is_complete(int members, bool both_ways) {
  for (int m = 0; m < members; ++m) {
    if (!is_complete(members, m, both_ways)) return false;
  }
  return true;
}
static_assert(is_complete(2, true) && is_complete(3, true) && is_complete(4, true));
static_assert(is_complete(5, false) && is_complete(8, true));

TEST(RingSchedule, IsCompleteForEveryNumberOfMembers) {
  for (int members = 2; members <= kMostMembers; ++members) {
    EXPECT_TRUE(is_complete(members, false)) << members;
    EXPECT_TRUE(is_complete(members, true)) << members;
    const RingSteps both = ring_steps(members, true);
    EXPECT_EQ(both.forward, members / 2);
    EXPECT_EQ(both.forward + both.reverse, members - 1);
    EXPECT_EQ(ring_steps(members, false).forward, members - 1);
  }
}

// What all blocks have of a share, of `count` elements.
void expect_share_is_cut(std::size_t count, int ranks, int share, int blocks) {
  KernelArgs work{};
  work.count = count;
  work.ranks = ranks;
  work.blocks = blocks;
  work.ring.chunk_bytes = 256;
  const std::size_t unit = 16 / sizeof(float);
  const Range whole = shard({0, count}, share, ranks, unit);
  std::size_t elements = 0;
  for (int block = 0; block < blocks; ++block) {
    const RingCut cut(work, divided(count, ranks, unit), block, sizeof(float));
    for (int part = 0; part < cut.partitions * kRingLead; ++part) {
      const Range chunk = cut.chunk(share, ranks, part / kRingLead, part % kRingLead);
      elements += chunk.count;
      const bool within =
          chunk.first >= whole.first && chunk.first + chunk.count <= whole.first + whole.count;
      EXPECT_TRUE(chunk.count == 0 || within);
    }
  }
  EXPECT_EQ(elements, whole.count) << ranks << " " << count << " " << share;
}

// The shares of kernels' rings are those of programs: blocks, partitions and chunks cut them.
TEST(RingSchedule, ChunksOfKernelsMakeUpTheShares) {
  for (const int ranks : {2, 3, 5, 8}) {
    for (const std::size_t count : {0u, 1u, 100u, 4097u}) {
      for (int share = 0; share < ranks; ++share) {
        for (const int blocks : {1, 3}) expect_share_is_cut(count, ranks, share, blocks);
      }
    }
  }
}

}  // namespace
}  // namespace tutti::test
