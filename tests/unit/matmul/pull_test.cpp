// The steps of blocks that bring A, followed on the host.
#include "matmul/kernel/pull.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
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

// All pullers of a case.
struct Pulled {
  Pulled(const PullCase& of, int count) : with(of), chunks(chunks_of(of.plan, of.m, of.k)) {
    pull.groups = groups_of(of.plan);
    pull.pullers = count;
    pull.columns = static_cast<int>(of.k);
  }

  std::vector<PullStep> steps(int puller) const {
    PullWalk walk(chunks, pull, puller);
    std::vector<PullStep> steps;
    for (PullStep step; walk.next(step);) steps.push_back(step);
    return steps;
  }

  // Each part ends once, with its last step; `flags`: those of its parts, in order.
  std::vector<int> flags(int puller) const {
    std::vector<int> flags;
    bool begins = true;
    for (const PullStep& step : steps(puller)) {
      const int flag = step.shard * chunks.k_groups + step.k_group;
      if (begins) flags.push_back(flag);
      EXPECT_EQ(flags.back(), flag);
      begins = step.last;
    }
    EXPECT_TRUE(begins);
    return flags;
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
      for (int puller = 0; puller < count; ++puller) {
        for (const PullStep& step : pulled.steps(puller)) {
          ASSERT_LE(step.rows, kMostPullRows);
          ASSERT_LE(step.rows * pulled.chunks.k_group * 2, kPullStageBytes);
          ASSERT_NE(step.shard, with.plan.own);
          for (int row = step.row; row < step.row + step.rows; ++row) {
            ASSERT_EQ(row / pulled.chunks.shard_rows, step.shard);
            ASSERT_EQ(++brought[std::pair(row, step.k_group)], 1);
          }
        }
      }
      const int own_begin = std::min(pulled.chunks.m, with.plan.own * pulled.chunks.shard_rows);
      const int own_end = std::min(pulled.chunks.m, own_begin + pulled.chunks.shard_rows);
      const auto groups = (static_cast<int>(with.k) - 1) / pulled.chunks.k_group + 1;
      ASSERT_EQ(static_cast<int>(brought.size()), (pulled.chunks.m - own_end + own_begin) * groups);
    }
  }
}

// The last one to bring its part of a flag opens it, so each has to have a part of each.
TEST(Pullers, HaveAPartOfEachFlagInTheOrderOfTheModel) {
  for (const PullCase& with : pull_cases()) {
    const auto trace =
        modelled_arrival(with.plan, {.m = with.m, .bytes_per_row = 2 * with.k}, {}, "");
    ASSERT_TRUE(trace.is_ok()) << trace.status().to_string();
    std::vector<int> expected;
    for (const ArrivedChunk& each : trace->arrivals) expected.push_back(each.chunk);
    const Pulled pulled(with, 20);
    for (int puller = 0; puller < 20; ++puller) ASSERT_EQ(pulled.flags(puller), expected);
  }
}

TEST(Pullers, HavePartsOfAboutTheSameSize) {
  const Pulled pulled({1277, 4096, {.shards = 3, .k_groups = 8}}, 20);
  std::set<int> rows;
  for (int puller = 0; puller < 20; ++puller) {
    int sum = 0;
    for (const PullStep& step : pulled.steps(puller)) {
      if (step.shard == 1 && step.k_group == 0) sum += step.rows;
    }
    rows.insert(sum);
  }
  EXPECT_EQ(rows, (std::set<int>{21, 22}));  // of 426
}

}  // namespace
}  // namespace tutti
