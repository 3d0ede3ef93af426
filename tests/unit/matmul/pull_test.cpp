// The parts of blocks that bring A, followed on the host.
#include "matmul/kernel/pull.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "matmul/gated_arguments.hpp"

namespace tutti {
namespace {

struct PullCase {
  std::size_t m, k;
  ArrivalPlan plan;
};

std::vector<PullCase> pull_cases() {
  std::vector<PullCase> cases;
  for (const std::size_t m : {5, 64, 277}) {
    for (const std::size_t k : {64, 200, 4096}) {
      for (const int shards : {2, 3, 8}) {
        for (const int k_groups : {1, 3, 8}) {
          for (const int groups : {0, 1, 2}) {
            if (groups >= shards) continue;
            cases.push_back({m,
                             k,
                             {.shards = shards,
                              .own = shards - 1,
                              .k_groups = k_groups,
                              .shard_groups = groups}});
          }
        }
      }
    }
  }
  return cases;
}

// All warps of a case's pullers.
struct Pulled {
  Pulled(const PullCase& of, int pullers) : with(of), chunks(chunks_of(of.plan, of.m, of.k)) {
    pull.groups = groups_of(of.plan);
    pull.pullers = pullers;
    pull.columns = static_cast<int>(of.k);
  }

  int warps() const { return pull.pullers * kPullWarps; }
  std::vector<PullPart> parts(int warp) const {
    PullWalk walk(chunks, pull, warp);
    std::vector<PullPart> parts;
    for (PullPart part; walk.next(part);) parts.push_back(part);
    return parts;
  }
  int position(const PullPart& part) const {
    return (part.shard - with.plan.own + with.plan.shards) % with.plan.shards;
  }
  int rows_of_shard(int shard) const {
    return std::clamp(chunks.m - shard * chunks.shard_rows, 0, chunks.shard_rows);
  }

  const PullCase with;
  const ArrivalChunks chunks;
  ArrivalPull pull;
};

TEST(Pullers, BringEveryRowOfEveryKGroupOnce) {
  for (const PullCase& with : pull_cases()) {
    for (const int count : {2, 20}) {
      const Pulled pulled(with, count);
      std::map<std::pair<int, int>, int> brought;  // row and k-group
      for (int warp = 0; warp < pulled.warps(); ++warp) {
        for (const PullPart& part : pulled.parts(warp)) {
          ASSERT_GT(part.rows, 0);
          ASSERT_NE(part.shard, with.plan.own);
          for (int row = part.row; row < part.row + part.rows; ++row) {
            ASSERT_EQ(row / pulled.chunks.shard_rows, part.shard);
            ASSERT_EQ(++brought[std::pair(row, part.k_group)], 1);
          }
        }
      }
      const int rows = pulled.chunks.m - pulled.rows_of_shard(with.plan.own);
      const auto groups = (static_cast<int>(with.k) - 1) / pulled.chunks.k_group + 1;
      ASSERT_EQ(static_cast<int>(brought.size()), rows * groups);
    }
  }
}

// Whose part makes the sum whole opens the flag.
TEST(Pullers, CountAllRowsOfAFlag) {
  for (const PullCase& with : pull_cases()) {
    const Pulled pulled(with, 4);
    std::map<std::pair<int, int>, int> counted;  // shard and k-group
    for (int warp = 0; warp < pulled.warps(); ++warp) {
      for (const PullPart& part : pulled.parts(warp)) {
        ASSERT_EQ(part.shard_rows, pulled.rows_of_shard(part.shard));
        counted[std::pair(part.shard, part.k_group)] += part.rows;
      }
    }
    for (const auto& [flag, rows] : counted) ASSERT_EQ(rows, pulled.rows_of_shard(flag.first));
  }
}

// A group's k-groups come one after another, as in the model.
TEST(Pullers, GoThroughGroupsAndKGroupsInTheOrderOfTheModel) {
  for (const PullCase& with : pull_cases()) {
    const auto trace =
        modelled_arrival(with.plan, {.m = with.m, .bytes_per_row = 2 * with.k}, {}, "");
    ASSERT_TRUE(trace.is_ok()) << trace.status().to_string();
    std::map<std::pair<int, int>, std::size_t> turn;  // of a shard's k-group
    for (std::size_t i = 0; i < trace->arrivals.size(); ++i) {
      const int flag = trace->arrivals[i].chunk;
      turn[std::pair(flag / with.plan.k_groups, flag % with.plan.k_groups)] = i;
    }
    const Pulled pulled(with, 4);
    for (int warp = 0; warp < pulled.warps(); ++warp) {
      std::size_t last = 0;
      for (const PullPart& part : pulled.parts(warp)) {
        const auto found = turn.find(std::pair(part.shard, part.k_group));
        ASSERT_NE(found, turn.end());
        ASSERT_GE(found->second, last);
        last = found->second;
      }
    }
  }
}

TEST(Pullers, HaveAboutAsManyRowsInFewParts) {
  // Two groups of three and four shards of 160 rows; the last one has 157.
  const Pulled pulled({1277, 4096, {.shards = 8, .k_groups = 8, .shard_groups = 2}}, 2);
  for (int warp = 0; warp < pulled.warps(); ++warp) {
    std::map<std::pair<int, int>, int> rows, parts;  // of a group and k-group
    for (const PullPart& part : pulled.parts(warp)) {
      const std::pair of(pulled.pull.groups.at(pulled.position(part)), part.k_group);
      rows[of] += part.rows;
      ++parts[of];
    }
    ASSERT_EQ(rows.size(), 16U);
    for (const auto& [of, sum] : rows) {
      ASSERT_NEAR(sum, of.first == 0 ? 20 : 26, 1);  // of 480 and 637
      ASSERT_LE(parts[of], 2);
    }
  }
}

}  // namespace
}  // namespace tutti
