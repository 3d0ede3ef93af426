#include "interpreter.hpp"

#include <gtest/gtest.h>

#include "pipelines/check.hpp"
#include "programs.hpp"
#include "support/check.hpp"

namespace tutti::pipelines::test {
namespace {

using tutti::test::take;

// Four calls of all ranks: 0, the number of wrong elements, or -1.
int run_calls(const Description& description, unsigned seed) {
  const Program program = take(derive(description));
  const auto ranks = take(checked(program));
  return Interpreter(program, ranks, seed).run(4);
}

TEST(PipelineInterpreter, AllProgramsMultiplyTheGatheredA) {
  std::minstd_rand random;
  for (int ranks = 1; ranks <= 8; ++ranks) {
    // The last shard is smaller, or the last shards are empty.
    std::vector<std::size_t> rows = {static_cast<std::size_t>(3 * ranks - 1)};
    if (ranks > 3) rows.push_back(3);
    for (const std::size_t m : rows) {
      for (const Description& kind : all_kinds(ranks, m)) {
        const Description description = varied(kind, random);
        const auto seed = static_cast<unsigned>(random());
        EXPECT_EQ(run_calls(description, seed), 0) << name(description);
      }
    }
  }
}

TEST(PipelineInterpreter, EmptyExtentsAreDefined) {
  for (const Algorithm algorithm : kAllAlgorithms) {
    Description description = small(algorithm, Protocol::kGet, 3, 0);
    EXPECT_EQ(run_calls(description, 1), 0);
    description.m = 5;
    description.k = 0;  // C becomes the bias
    EXPECT_EQ(run_calls(description, 2), 0);
    description.k = 2;
    description.products.front().n = 0;
    EXPECT_EQ(run_calls(description, 3), 0);
  }
}

TEST(PipelineInterpreter, EpochsWrap) {
  const Program program = take(derive(small(Algorithm::kRing, Protocol::kPut, 3, 9)));
  const auto ranks = take(checked(program));
  Interpreter interpreter(program, ranks, 1);
  interpreter.start_at(std::uint64_t{0} - 3);
  EXPECT_EQ(interpreter.run(6), 0);
}

TEST(PipelineInterpreter, OnlyTheSetupAllocatesAndExchangesHandles) {
  const Program program = take(derive(small(Algorithm::kShift, Protocol::kGet, 3, 9)));
  const auto ranks = take(checked(program));
  Interpreter interpreter(program, ranks, 1);
  for (int times = 0; times < 3; ++times) EXPECT_EQ(interpreter.run(4), 0);
  EXPECT_EQ(interpreter.allocations(), 3);
  EXPECT_EQ(interpreter.exchanges(), 3);
}

// What check() refuses does go wrong: each wait of a rank is left out, and some order of streams
// then gives a wrong result.
TEST(PipelineInterpreter, EveryWaitIsNeeded) {
  constexpr unsigned kMostSeeds = 400;
  for (const Description& description : all_kinds(3, 9)) {
    const Program program = take(derive(description));
    const auto ranks = take(checked(program));
    for (std::size_t left_out = 0; left_out < ranks[0].size(); ++left_out) {
      if (!waits_for_another(ranks[0][left_out])) continue;
      if (only_orders(description, ranks[0], left_out)) continue;
      auto changed = ranks;
      changed[0].erase(changed[0].begin() + static_cast<std::ptrdiff_t>(left_out));
      unsigned seed = 0;
      while (seed < kMostSeeds && Interpreter(program, changed, seed).run(2) == 0) ++seed;
      EXPECT_LT(seed, kMostSeeds) << name(description) << ": " << ranks[0][left_out].node;
    }
  }
}

}  // namespace
}  // namespace tutti::pipelines::test
