// tune(): which way of running a call is kept, what it leaves behind, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <vector>

#include "engine_fixture.hpp"
#include "matmul/contender.hpp"
#include "matmul/timing.hpp"
#include "support/check.hpp"

namespace tutti {
namespace {

using test::require_ok;
using test::take;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr MatmulTiling kTiling = {.tile = &kMatmulTiles[5], .wide_rows = 4};  // 128x192
// With the same tile first, and with another.
constexpr MatmulTiling kNarrowAtEnd = {
    .tile = &kMatmulTiles[5], .narrow = &kMatmulTiles[9], .wide_rows = 2};
constexpr MatmulTiling kOtherTiling = {.tile = &kMatmulTiles[9], .wide_rows = 4};  // 128x128

MatmulProblem problem_with(int products) {
  MatmulProblem problem{.m = 1000, .k = 64};
  problem.products = products;
  return problem;
}

MatmulContender own_in(const MatmulTiling& tiling, double microseconds) {
  return {.way = {.algorithm = MatmulAlgorithm::kOwn, .tiling = tiling}, .part_us = {microseconds}};
}

MatmulContender library_in(int heuristic, std::vector<double> part_us) {
  MatmulContender contender{.way = {.algorithm = MatmulAlgorithm::kCublasLt},
                            .parts = static_cast<int>(part_us.size())};
  for (std::size_t part = 0; part < part_us.size(); ++part) {
    contender.way.heuristic[part] = heuristic;
  }
  contender.part_us = std::move(part_us);
  return contender;
}

const SelectedMatmul kLibrarysChoice = {.algorithm = MatmulAlgorithm::kCublasLt};

// The algorithm and its configuration, where the forecast's fastest tiling is kTiling.
std::string winner_of(std::vector<MatmulContender> contenders,
                      const SelectedMatmul& usual = kLibrarysChoice) {
  const MatmulProblem problem = problem_with(contenders.back().parts);
  return text_of(fastest_way(std::move(contenders), problem, usual, kTiling), problem);
}

TEST(MatmulContenders, AreTilesAndHeuristics) {
  const auto contenders = contenders_of({kTiling}, {3, 1});
  ASSERT_EQ(contenders.size(), 4U);
  EXPECT_EQ(contenders[0].way.tiling, kTiling);
  EXPECT_EQ(contenders[0].parts, 1);
  EXPECT_EQ(contenders[3].parts, 2);
  EXPECT_EQ(contenders[3].way.heuristic[0], 2);
  EXPECT_EQ(contenders[3].way.heuristic[1], 0);  // the second product has no other
  EXPECT_TRUE(contenders_of({}, {}).empty());
}

TEST(MatmulContenders, TheFastestSaysByHowMuch) {
  const SelectedMatmul fastest =
      fastest_way({own_in(kTiling, 12), library_in(0, {11}), library_in(1, {10})}, problem_with(1),
                  kLibrarysChoice, kTiling);
  EXPECT_EQ(fastest.algorithm, MatmulAlgorithm::kCublasLt);
  EXPECT_EQ(fastest.heuristic[0], 1);
  EXPECT_EQ(fastest.why,
            "measured: 10.0 us; the next, cublaslt_matmul, heuristic 1, takes 10.0 % longer");
  EXPECT_EQ(fastest_way({own_in(kTiling, 12)}, problem_with(1), kLibrarysChoice, kTiling).why,
            "measured: 12.0 us; nothing else ran");
}

TEST(MatmulContenders, InATieItIsTheUsualOne) {
  EXPECT_EQ(winner_of({library_in(0, {100.9}), library_in(1, {100})}),
            "cublaslt_matmul, heuristic 1");
  EXPECT_EQ(winner_of({library_in(0, {101.1}), library_in(1, {100})}),
            "cublaslt_matmul, heuristic 2");
  const auto own = [](const MatmulTiling& tiling) {
    return SelectedMatmul{.algorithm = MatmulAlgorithm::kOwn, .tiling = tiling};
  };
  EXPECT_THAT(winner_of({own_in(kTiling, 100.9), library_in(0, {100})}, own(kTiling)),
              StartsWith("own_matmul, 128x192"));
  EXPECT_EQ(winner_of({own_in(kTiling, 100), library_in(0, {100.9})}),
            "cublaslt_matmul, heuristic 1");
  // If the usual one is slower, the forecast's tile and the library's choice come before others.
  EXPECT_THAT(winner_of({own_in(kOtherTiling, 100), own_in(kTiling, 100.9), library_in(0, {120})}),
              StartsWith("own_matmul, 128x192"));
  EXPECT_THAT(winner_of({own_in(kOtherTiling, 100), own_in(kTiling, 101.1), library_in(0, {120})}),
              StartsWith("own_matmul, 128x128"));
  EXPECT_EQ(winner_of({own_in(kNarrowAtEnd, 100), own_in(kTiling, 100.9), library_in(0, {120})}),
            "own_matmul, 128x192x64, cluster 2x1, 5 stages");
  EXPECT_EQ(winner_of({own_in(kNarrowAtEnd, 100), own_in(kTiling, 101.1), library_in(0, {120})}),
            "own_matmul, 128x192x64, from row 512 128x128x64, cluster 2x1, 5 stages");
  EXPECT_EQ(
      winner_of({own_in(kTiling, 120), library_in(0, {100.9}), library_in(1, {100})}, own(kTiling)),
      "cublaslt_matmul, heuristic 1");
  EXPECT_THAT(fastest_way({library_in(0, {100.9}), library_in(1, {100})}, problem_with(1),
                          kLibrarysChoice, kTiling)
                  .why,
              "measured: 100.9 us, as fast as cublaslt_matmul, heuristic 2");
}

TEST(MatmulContenders, EachProductHasItsBestHeuristic) {
  EXPECT_EQ(winner_of({own_in(kTiling, 35), library_in(0, {10, 20}), library_in(1, {20, 10}),
                       library_in(2, {15, 9.95})}),
            "cublaslt_matmul, heuristics 1, 2");
  EXPECT_THAT(winner_of({own_in(kTiling, 19), library_in(0, {10, 20}), library_in(1, {20, 10})}),
              StartsWith("own_matmul, "));
}

TEST(MatmulContenders, WhatFailedIsLeftOut) {
  MatmulContender failed = library_in(1, {10});
  failed.failure = Status(StatusCode::kCuda, "no");
  EXPECT_EQ(winner_of({failed, library_in(0, {20})}), "cublaslt_matmul, heuristic 1");
}

class MatmulTuneTest : public test::EngineFixture {
 protected:
  MatmulTuneTest() {
    surroundings_.time = [this](CudaDriver&, const MatmulTiming&,
                                std::span<MatmulContender> contenders) {
      for (MatmulContender& each : contenders) {
        const std::string name = each.way.tiling.tile == nullptr
                                     ? fmt::format("heuristic {}", each.way.heuristic[0] + 1)
                                     : std::string(each.way.tiling.tile->name);
        timed_.push_back(name);
        const double time = times_.contains(name) ? times_.at(name) : 100;
        each.part_us.assign(static_cast<std::size_t>(each.parts), time);
        if (time < 0) each.failure = Status(StatusCode::kCuda, name + " failed");
      }
      return Status::ok();
    };
  }

  MatmulSurroundings surroundings_ = surroundings();
  std::map<std::string, double> times_;  // of heuristics and tiles; negative: it fails
  std::vector<std::string> timed_;
};

TEST_F(MatmulTuneTest, TheFastestIsKept) {
  MatmulEngine tuned(surroundings_);
  const Matmul call = on_gpu(64, DataType::kBfloat16);
  times_ = {{"128x208", 40}, {"heuristic 3", 50}};
  const MatmulPlan plan = take(tuned.tune(nullptr, call));
  EXPECT_EQ(plan.algorithm, "own_matmul");
  EXPECT_EQ(plan.config, "128x208x64, cluster 1x1, 4 stages");
  EXPECT_EQ(plan.why,
            "measured: 40.0 us; the next, cublaslt_matmul, heuristic 3, takes 25.0 % longer");
  EXPECT_EQ(take(tuned.plan(call)).why, plan.why);
  EXPECT_THAT(take(tuned.explain(call)),
              HasSubstr("plan: own_matmul, 128x208x64, cluster 1x1, 4 stages: measured: 40.0 us;"));
  require_ok(tuned.run(nullptr, call));
  EXPECT_THAT(kernels, ElementsAre("own 128x208"));
  // Another measurement replaces the first.
  times_ = {{"heuristic 3", 50}};
  EXPECT_EQ(take(tuned.tune(nullptr, call)).config, "heuristic 3");
  const FakeCudaOpen open = cuda.open();
  require_ok(tuned.run(nullptr, call));
  EXPECT_EQ(kernels.size(), 1U);
  EXPECT_EQ(cuda.open(), open);  // only the stub's first heuristic needs a workspace
  // Calls of other sizes are not affected.
  Matmul other = call;
  other.m = 63;
  EXPECT_THAT(take(tuned.plan(other)).why, StartsWith("M is 63"));
}

TEST_F(MatmulTuneTest, AGraphRunsWhatWasMeasured) {
  MatmulEngine tuned(surroundings_);
  const Matmul call = on_gpu(64, DataType::kBfloat16);
  times_ = {{"128x128", 40}};
  take(tuned.tune(nullptr, call));
  Stream const stream = take(cuda.create_stream(0));
  require_ok(cuda.begin_capture(stream));
  require_ok(tuned.run(stream, call));
  EXPECT_THAT(kernels, ElementsAre("own 128x128"));
  const Status captured = tuned.tune(stream, call).status();
  EXPECT_EQ(captured.code(), StatusCode::kUnsupported);
  EXPECT_THAT(captured.message(), HasSubstr("call tune() before the capture"));
  require_ok(cuda.destroy_graph(take(cuda.end_capture(stream))));
}

TEST_F(MatmulTuneTest, ItComparesWhatTheCallAllows) {
  MatmulEngine tuned(surroundings_);
  Matmul call = on_gpu(64, DataType::kBfloat16);
  times_ = {{"128x128", 40}, {"heuristic 2", 50}};
  call.algorithm = "cublaslt_matmul";
  EXPECT_EQ(take(tuned.tune(nullptr, call)).config, "heuristic 2");
  EXPECT_THAT(timed_, testing::Each(StartsWith("heuristic ")));
  call.algorithm = "own_matmul";
  timed_.clear();
  EXPECT_THAT(take(tuned.tune(nullptr, call)).config, StartsWith("128x128"));
  EXPECT_THAT(timed_, testing::Each(HasSubstr("x")));
  call.algorithm = {};
  EXPECT_THAT(take(tuned.plan(call)).why, StartsWith("M is 64"));
  timed_.clear();
  call.tile = "256x128";
  EXPECT_EQ(take(tuned.tune(nullptr, call)).why, "the call names it");
  call.tile = {};
  call.algorithm = "plain_matmul";
  EXPECT_EQ(take(tuned.tune(nullptr, call)).why, "the call names it");
  EXPECT_THAT(timed_, ElementsAre());
}

TEST_F(MatmulTuneTest, ATileThatIsPredictedToBeSlowIsNotMeasured) {
  MatmulEngine tuned(surroundings_);
  Matmul call = on_gpu(4096, DataType::kBfloat16);
  call.a = call.b = call.c = take(cuda.allocate(0, 64 * MiB));
  call.n = 1792;
  call.k = 4096;
  call.algorithm = "own_matmul";
  take(tuned.tune(nullptr, call));
  EXPECT_THAT(timed_, ElementsAre("128x256", "256x128", "128x240", "128x224"));
}

TEST_F(MatmulTuneTest, WhatFailsIsNotKept) {
  MatmulEngine tuned(surroundings_);
  const Matmul call = on_gpu(64, DataType::kFloat32);
  times_ = {{"heuristic 2", -1}, {"heuristic 3", 90}};
  EXPECT_EQ(take(tuned.tune(nullptr, call)).config, "heuristic 3");
  for (int heuristic = 1; heuristic <= 8; ++heuristic) {
    times_[fmt::format("heuristic {}", heuristic)] = -1;
  }
  const Status none = tuned.tune(nullptr, call).status();
  EXPECT_EQ(none.code(), StatusCode::kCuda);
  EXPECT_EQ(none.message(), "heuristic 1 failed");
  EXPECT_EQ(take(tuned.plan(call)).config, "heuristic 3");  // as before
}

TEST_F(MatmulTuneTest, ItIsNeverForgotten) {
  MatmulEngine tuned(surroundings_);
  Matmul call = on_gpu(64, DataType::kFloat32);
  times_ = {{"heuristic 2", 50}};
  take(tuned.tune(nullptr, call));
  Matmul other = call;
  other.algorithm = "plain_matmul";
  for (other.lda = 1000; other.lda < 1000 + 4100; ++other.lda) take(tuned.plan(other));
  EXPECT_EQ(take(tuned.plan(call)).config, "heuristic 2");
}

TEST_F(MatmulTuneTest, BadCallsAreRefusedAndOthersHaveNothingToCompare) {
  MatmulEngine tuned(surroundings_);
  Matmul call = on_gpu(64, DataType::kBfloat16);
  call.ldc = 1;
  EXPECT_EQ(tuned.tune(nullptr, call).status().code(), StatusCode::kInvalidArgument);
  call.ldc = 0;
  call.algorithm = "best";
  EXPECT_EQ(tuned.tune(nullptr, call).status().code(), StatusCode::kInvalidArgument);
  call.algorithm = "host_matmul";
  EXPECT_EQ(tuned.tune(nullptr, call).status().code(), StatusCode::kUnsupported);
  call.algorithm = {};
  call.k = 0;
  EXPECT_EQ(take(tuned.tune(nullptr, call)).algorithm, "plain_matmul");
  call.m = 0;
  EXPECT_EQ(take(tuned.tune(nullptr, call)).algorithm, "");
  std::vector<float> one(1);
  const Matmul host = {.a = one.data(),
                       .b = one.data(),
                       .c = one.data(),
                       .m = 1,
                       .n = 1,
                       .k = 1,
                       .dtype = DataType::kFloat32};
  EXPECT_EQ(take(tuned.tune(nullptr, host)).algorithm, "host_matmul");
  EXPECT_THAT(timed_, ElementsAre());
}

// With the real timing, on the fake GPU.
TEST_F(MatmulTuneTest, CIsUntouchedAndMemoryIsFreed) {
  Matmul call = on_gpu(3, DataType::kBfloat16);
  const std::vector<std::byte> before(64 * KiB, std::byte{0x5a});
  call.algorithm = "cublaslt_matmul";
  require_ok(engine.run(nullptr, call));  // the stream gets its workspace
  call.algorithm = {};
  require_ok(cuda.copy(call.c, before.data(), before.size()));
  const FakeCudaOpen open = cuda.open();
  EXPECT_THAT(take(engine.tune(nullptr, call)).why, StartsWith("measured: "));
  EXPECT_EQ(cuda.open(), open);
  EXPECT_EQ(std::memcmp(call.c, before.data(), before.size()), 0);
  EXPECT_THAT(kernels, testing::Contains("own 128x192"));
}

TEST_F(MatmulTuneTest, WhatATimeoutLeavesInUseIsNotFreed) {
  surroundings_.time = [](CudaDriver&, const MatmulTiming&, std::span<MatmulContender>) {
    return Status(StatusCode::kTimeout, "late");
  };
  MatmulEngine tuned(surroundings_);
  const Matmul call = on_gpu(64, DataType::kBfloat16);
  const std::size_t allocations = cuda.open().allocations;
  EXPECT_EQ(tuned.tune(nullptr, call).status().code(), StatusCode::kTimeout);
  EXPECT_EQ(cuda.open().allocations, allocations + 1);
  EXPECT_THAT(take(tuned.plan(call)).why, StartsWith("M is 64"));
}

class MatmulTimingTest : public test::EngineFixture {
 protected:
  MatmulContender named(char name) {
    return {.run = [this, name](int part) {
      order_ += static_cast<char>(name + part);
      return name == 'X' ? Status(StatusCode::kCuda, "no") : Status::ok();
    }};
  }

  Stream stream_ = take(cuda.create_stream(0));
  std::vector<std::byte> evicting_ = std::vector<std::byte>(8);
  MatmulTiming timing_{.stream = stream_, .evicting = evicting_.data(), .evicting_bytes = 8};
  std::string order_;
};

TEST_F(MatmulTimingTest, ContendersRunInTurnThereAndBack) {
  std::vector<MatmulContender> contenders = {named('A'), named('X'), named('C')};
  contenders[2].parts = 2;
  const FakeCudaOpen open = cuda.open();
  require_ok(time_contenders(cuda, timing_, contenders));
  EXPECT_THAT(order_, StartsWith("AXCDCDAACDCDA"));  // X is not tried again
  EXPECT_EQ(contenders[0].part_us.size(), 1U);
  EXPECT_EQ(contenders[2].part_us.size(), 2U);
  EXPECT_TRUE(contenders[1].part_us.empty());
  EXPECT_EQ(contenders[1].failure.message(), "no");
  EXPECT_EQ(cuda.open(), open);
  // Each run, and X's, begins with an L2 that was written over.
  const auto runs = std::count(order_.begin(), order_.end(), 'A') +
                    std::count(order_.begin(), order_.end(), 'C') + 1;
  EXPECT_EQ(cuda.calls("set_async"), runs);
  EXPECT_GE(std::count(order_.begin(), order_.end(), 'A'), kWarmingRounds + kLeastTimedRounds);
}

TEST_F(MatmulTimingTest, AStreamThatDoesNotFinishIsATimeout) {
  std::vector<MatmulContender> contenders = {named('A')};
  const auto gate = std::make_shared<std::atomic<bool>>(false);
  cuda.add_gate(stream_, gate);
  timing_.patience = std::chrono::milliseconds(5);
  const Status late = time_contenders(cuda, timing_, contenders);
  EXPECT_EQ(late.code(), StatusCode::kTimeout);
  EXPECT_EQ(late.message(), "tune of a matmul: the stream did not finish within 5 ms");
  gate->store(true);
}

}  // namespace
}  // namespace tutti
