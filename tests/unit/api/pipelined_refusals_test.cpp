// Calls of pipelines that a rank refuses, or for which it has no memory, on GPUs that do not exist:
// all ranks say the same, and go on together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/all_gather_matmul.hpp"
#include "support/check.hpp"
#include "support/ranks.hpp"
#include "support/told.hpp"
#include "unit/api/pipelined_gpus.hpp"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const GpuPipeline kRefused{}, kKnown{.m = 24};
constexpr std::string_view kNoRoom = "no room for its kernel";

class PipelinedRefusals : public ::testing::Test {
 protected:
  PipelinedRefusals() { ranks.prepare(kKnown); }

  static std::size_t at(int rank) { return PipelinedGpus::at(rank); }
  Communicator& group(int rank) { return ranks.gpus.groups[at(rank)]; }
  AllGatherMatmul call(int rank, const GpuPipeline& kind = kRefused) {
    return ranks.calls(rank, kind).call(1, ranks.streams[at(rank)]);
  }
  // Rank 0's C is on the host.
  AllGatherMatmul bad_call(int rank) {
    AllGatherMatmul made = call(rank);
    if (rank == 0) made.c = on_host.data();
    return made;
  }
  // Its first call finds no memory for a kernel.
  MatmulSurroundings exhausted_once() {
    MatmulSurroundings made = host_products(ranks.gpus.cuda, ranks.multiplied);
    made.load_own = [left = std::make_shared<std::atomic<bool>>(true)](
                        CudaDriver&, const MatmulProblem&, const MatmulTiling&) {
      return left->exchange(false) ? Status(StatusCode::kResourceExhausted, std::string(kNoRoom))
                                   : Status::ok();
    };
    return made;
  }
  Status run_exhausted(int rank, const TuningTable* table) {
    AllGatherMatmul one = call(rank);
    if (table != nullptr) one.algorithm = {};
    MatmulEngine& engine = rank == 1 ? exhausted : ranks.engine;
    return all_gather_matmul(group(rank), one, {engine, table});
  }
  TuningTable table_of_refused() {
    const AllGatherMatmulEntry entry{
        .gpu = group(0).impl().topology().gpu,
        .ranks = 2,
        .element_bytes = 2,
        .size = {kRefused.m, kGpuColumns, kGpuDepth},
        .way = {.algorithm = AllGatherMatmulAlgorithm::kPipelinedShift, .streams = 4},
        .time_us = 5,
        .unfused_us = 9};
    return take(TuningTable::from_sources({{PlanSource::kUserCache, "cache", {}, {entry}}}));
  }

  // A rank waits for the other one, whose page still says what it called before.
  void expect_to_go_on(int first) {
    std::vector<GpuCalls> sides;
    for (const int r : {0, 1}) sides.push_back(ranks.calls(r, kKnown));
    for (const int r : {first, 1 - first}) {
      require_ok(ranks.run(r, sides[at(r)].call(1, ranks.streams[at(r)])));
      std::this_thread::sleep_for(milliseconds(50));
      EXPECT_EQ(group(r).status().to_string(), "ok") << "rank " << r;
    }
    for (const int r : {0, 1}) {
      require_ok(ranks.end_of(r));
      EXPECT_EQ(sides[at(r)].count_wrong(1), 0);
    }
  }

  std::vector<std::byte> on_host = std::vector<std::byte>(KiB);
  PipelinedGpus ranks{2};
  MatmulEngine exhausted{exhausted_once()};
};

TEST_F(PipelinedRefusals, WithoutMemoryTheGroupGoesOn) {
  for (const int first : {0, 1}) {
    ranks.gpus.cuda.fail("create_allocation", 0, true);
    on_all_ranks(2, [&](int r) {
      const Status status = ranks.run(r, call(r));
      EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.to_string();
    });
    EXPECT_TRUE(ranks.gpus.cuda.has_failed());
    expect_to_go_on(first);
  }
  ranks.prepare(kRefused);
  expect_to_go_on(0);
}

// Whatever the application then does.
TEST_F(PipelinedRefusals, ARankThatRefusesACallHasNotBegunIt) {
  ranks.prepare(kRefused);
  EXPECT_EQ(ranks.run(0, bad_call(0)).code(), StatusCode::kInvalidArgument);
  expect_to_go_on(1);
  EXPECT_EQ(ranks.run(0, bad_call(0)).code(), StatusCode::kInvalidArgument);
  ranks.prepare(kRefused);
  expect_to_go_on(0);
}

TEST_F(PipelinedRefusals, NorAtANewPlace) {
  std::vector<SymmetricMemory> shards(2);
  on_all_ranks(2, [&](int r) { shards[at(r)] = take(group(r).allocate(KiB)); });
  const auto at_place = [&](int rank, std::size_t place) {
    AllGatherMatmul made = call(rank);
    made.a = static_cast<std::byte*>(shards[at(rank)].data()) + place * 256;
    return made;
  };
  const auto on_both = [&](std::size_t place) {
    on_all_ranks(2, [&](int r) { require_ok(ranks.run(r, at_place(r, place))); });
  };
  on_both(0);
  AllGatherMatmul bad = at_place(0, 1);
  bad.c = on_host.data();
  EXPECT_EQ(ranks.run(0, bad).code(), StatusCode::kInvalidArgument);
  on_both(1);
  for (const int first : {0, 1}) expect_to_go_on(first);
}

TEST_F(PipelinedRefusals, TheFirstCallIsRefusedOnAllRanks) {
  on_all_ranks(2, [&](int r) {
    const Status status = ranks.run(r, bad_call(r));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              "all_gather_matmul: rank 0: matmul: c is ordinary host memory, and the product runs "
              "on a GPU");
  });
  expect_to_go_on(0);
  on_all_ranks(2, [&](int r) {
    const Status status = run_exhausted(r, nullptr);
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(status.message(), fmt::format("all_gather_matmul: rank 1: {}", kNoRoom));
  });
  expect_to_go_on(1);
  ranks.prepare(kRefused);
  expect_to_go_on(0);
}

TEST_F(PipelinedRefusals, ByATableAllRanksRunUnfused) {
  const TuningTable table = table_of_refused();
  const int launched = ranks.gpus.cuda.calls("launch");
  on_all_ranks(2, [&](int r) { require_ok(run_exhausted(r, &table)); });
  EXPECT_GE(ranks.gpus.cuda.calls("launch"), launched + 2) << "an all-gather on each rank";
  for (const int first : {0, 1}) expect_to_go_on(first);
}

// Later calls ask nobody: the others, which wait, are told at once.
TEST_F(PipelinedRefusals, ALaterCallFailsOnAllRanks) {
  const TuningTable table = table_of_refused();
  ranks.prepare(kRefused);
  const auto begin = std::chrono::steady_clock::now();
  require_ok(run_exhausted(0, &table));
  const std::string text = fmt::format("all_gather_matmul: rank 1: {}", kNoRoom);
  const Status status = run_exhausted(1, &table);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.to_string();
  EXPECT_EQ(status.message(), text);
  EXPECT_THAT(told(group(0), text), HasSubstr(text));
  EXPECT_EQ(ranks.end_of(0).code(), StatusCode::kResourceExhausted);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLongPatience / 2);
}

}  // namespace
}  // namespace tutti::test
