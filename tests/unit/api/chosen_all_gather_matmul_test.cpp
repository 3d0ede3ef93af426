// all_gather_matmul by a tuning table: what runs, and what runs where that cannot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "api/all_gather_matmul.hpp"
#include "base/units.hpp"
#include "support/check.hpp"
#include "support/fake_gpus.hpp"
#include "support/ranks.hpp"
#include "unit/api/groups.hpp"
#include "unit/api/layer_of_rank.hpp"

namespace tutti::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

TuningTable table_with(AllGatherMatmulEntry entry) {
  return take(TuningTable::from_sources({{PlanSource::kUserCache, "cache", {}, {entry}}}));
}

AllGatherMatmulEntry measured_on_host(const AllGatherMatmulSize& size,
                                      const AllGatherMatmulWay& way) {
  return {.backend = Backend::kHost,
          .ranks = 2,
          .element_bytes = 4,
          .size = size,
          .way = way,
          .time_us = 5,
          .unfused_us = 9};
}

TEST(ChosenAllGatherMatmul, ATableNamesAPipelineWithItsOptions) {
  const TuningTable table = table_with(measured_on_host(
      {6, 9, 5}, {AllGatherMatmulAlgorithm::kPipelinedTiles, pipelines::Protocol::kPut, 2, 3,
                  pipelines::Mover::kKernel, true}));
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    LayerOfRank side({.n = {7, 2}, .gathered = true}, group, nullptr);
    side.fill(1);
    const AllGatherMatmul call = side.call();
    const AllGatherMatmulPlan plan = take(tutti::plan(group, call, {matmul_engine(), &table}));
    EXPECT_EQ(plan.algorithm, "pipelined_tiles");
    EXPECT_EQ(plan.config,
              "pipelined_tiles, put by kernel, 3 tiles, 2 streams in order, host_matmul");
    EXPECT_THAT(plan.why,
                StartsWith("measured on the host, 2 ranks, 6x9x5: pipelined_tiles, put by kernel"));
    require_ok(all_gather_matmul(group, call, {matmul_engine(), &table}));
    side.expect_right("by table");
    const std::string text = take(explain(group, call, {matmul_engine(), &table}));
    EXPECT_THAT(text, HasSubstr("\n    unfused          can run it; measured: 9 us\n"));
    EXPECT_THAT(text, HasSubstr("\n  * pipelined_tiles  can run it; measured: 5 us; measured on"));
    AllGatherMatmul named = call;
    named.algorithm = "unfused";
    EXPECT_EQ(take(tutti::plan(group, named, {matmul_engine(), &table})).algorithm, "unfused");
  });
}

// Also where rank 1 has no rows, and no A.
TEST(ChosenAllGatherMatmul, ATableFusesOnTheHost) {
  const TuningTable table =
      table_with(measured_on_host({1, 7, 5}, {.algorithm = AllGatherMatmulAlgorithm::kFused}));
  auto groups = groups_of(2);
  on_all_ranks(2, [&](int rank) {
    Communicator& group = groups[static_cast<std::size_t>(rank)];
    LayerOfRank side({.m = 1, .gathered = true}, group, nullptr);
    side.fill(1);
    const AllGatherMatmul call = side.call();
    const AllGatherMatmulPlan plan = take(tutti::plan(group, call, {matmul_engine(), &table}));
    EXPECT_EQ(plan.config, "fused, rotated order, 1 chunk of a shard, host_matmul");
    EXPECT_THAT(plan.why, StartsWith("measured on the host, 2 ranks, 1x7x5: fused 5 us"));
    require_ok(all_gather_matmul(group, call, {matmul_engine(), &table}));
    side.expect_right("by table");
    const std::string text = take(explain(group, call, {matmul_engine(), &table}));
    EXPECT_THAT(text, HasSubstr("\n  * fused            can run it; measured: 5 us; measured on"));
    EXPECT_THAT(text, Not(HasSubstr("all_gather_v")));  // there is no such step
  });
}

// More rows than `fused` counts, at addresses that nobody reads.
TEST(ChosenAllGatherMatmul, WhatCannotRunIsUnfusedUnlessTheCallNamesIt) {
  const std::size_t m = 2 + (std::size_t{1} << 30);
  const TuningTable table =
      table_with(measured_on_host({m, 7, 5}, {.algorithm = AllGatherMatmulAlgorithm::kFused}));
  auto groups = groups_of(2);
  const auto place = [](int bit) { return reinterpret_cast<void*>(std::uintptr_t{1} << bit); };
  AllGatherMatmul call = {.a = place(40),
                          .b = place(41),
                          .c = place(42),
                          .m = m,
                          .n = 7,
                          .k = 5,
                          .dtype = DataType::kFloat32,
                          .workspace = place(43),
                          .workspace_bytes = m * 5 * 4};
  const AllGatherMatmulPlan plan = take(tutti::plan(groups[0], call, {matmul_engine(), &table}));
  EXPECT_EQ(plan.algorithm, "unfused");
  EXPECT_THAT(plan.why, HasSubstr("fused cannot run this call: all_gather_matmul/fused: m is "
                                  "1073741826: at most 1073741824"));
  EXPECT_THAT(take(explain(groups[0], call, {matmul_engine(), &table})),
              HasSubstr("\n  * unfused          can run it; measured: 9 us; measured on"));
  call.algorithm = "fused";
  EXPECT_EQ(tutti::plan(groups[0], call, {matmul_engine(), &table}).status().code(),
            StatusCode::kUnsupported);
}

// Two GPUs that do not exist, for which fused was measured.
class ChosenOnGpus : public ::testing::Test {
 protected:
  static constexpr std::size_t kRows = 256, kColumns = 64, kDepth = 64;
  static constexpr std::size_t kPart = 64 * KiB;

  ChosenOnGpus() {
    gpus_.cuda.on_launch = [](const CudaLaunch&) { return Status::ok(); };
    on_all_ranks(2, [&](int rank) {
      memory_[rank] = take(gpus_.groups[static_cast<std::size_t>(rank)].allocate(4 * kPart));
    });
    for (const int rank : {0, 1}) {
      streams_[rank] = gpus_.make_stream(rank);
      engines_[rank] = std::make_unique<MatmulEngine>(surroundings(rank));
      require_ok(gpus_.cuda.set_device(rank));
      require_ok(engines_[rank]->check_gated({.m = 1, .k = 8}));  // opens the library
    }
  }

  MatmulSurroundings surroundings(int rank) {
    const auto note = [this, rank](const char* what) {
      const std::lock_guard lock(mutex_);
      ran_.push_back(fmt::format("{} {}", rank, what));
      return Status::ok();
    };
    return {
        .cuda = [this](std::string*) { return &gpus_.cuda; },
        .cublas_lt = "/no/library",
        .own_kernels = true,
        .load_own = [](CudaDriver&, const MatmulProblem&,
                       const MatmulTiling&) { return Status::ok(); },
        .run_own = [note](CudaDriver&, const CheckedMatmul&, const MatmulTiling&, int,
                          Stream) { return note("own"); },
        .load_gated = [](CudaDriver&, const MatmulProblem&,
                         const MatmulTiling&) { return Status::ok(); },
        .run_gated = [note](CudaDriver&, const GatedMatmul&, int, Stream) { return note("gated"); },
        .run_plain = [note](CudaDriver&, const CheckedMatmul&, Stream) { return note("plain"); }};
  }
  std::byte* part(int rank, std::size_t which) {
    return static_cast<std::byte*>(memory_[rank].data()) + which * kPart;
  }
  AllGatherMatmul call(int rank) {
    return {.a = part(rank, 0),
            .b = part(rank, 1),
            .c = part(rank, 2),
            .m = kRows,
            .n = kColumns,
            .k = kDepth,
            .workspace = part(rank, 3),
            .workspace_bytes = kPart,
            .stream = streams_[rank]};
  }
  // On both ranks; `change` is made to what they call.
  std::vector<std::string> run(const std::function<void(int rank, AllGatherMatmul&)>& change) {
    ran_.clear();
    on_all_ranks(2, [&](int rank) {
      AllGatherMatmul one = call(rank);
      change(rank, one);
      const AllGatherMatmulParts parts(*engines_[rank], &table_);
      Communicator& group = gpus_.groups[static_cast<std::size_t>(rank)];
      plans_[rank] = take(tutti::plan(group, one, parts));
      require_ok(gpus_.cuda.set_device(rank));
      require_ok(gpus_.cuda.set_async(part(rank, 0), 1 + rank, kPart, streams_[rank]));
      require_ok(all_gather_matmul(group, one, parts));
    });
    for (const int rank : {0, 1}) {
      require_ok(gpus_.cuda.synchronize(streams_[rank]));
      require_ok(gpus_.groups[static_cast<std::size_t>(rank)].status());
    }
    return ran_;
  }

  FakeGpus gpus_{2};
  const TuningTable table_ = table_with({.gpu = gpus_.groups[0].impl().topology().gpu,
                                         .ranks = 2,
                                         .element_bytes = 2,
                                         .size = {kRows, kColumns, kDepth},
                                         .way = {.algorithm = AllGatherMatmulAlgorithm::kFused},
                                         .time_us = 708,
                                         .unfused_us = 956});
  SymmetricMemory memory_[2];
  Stream streams_[2] = {};
  std::unique_ptr<MatmulEngine> engines_[2];
  AllGatherMatmulPlan plans_[2];
  std::mutex mutex_;
  std::vector<std::string> ran_;
};

TEST_F(ChosenOnGpus, FusedRunsWhereItWasMeasuredToBeFaster) {
  EXPECT_THAT(run([](int, AllGatherMatmul&) {}), UnorderedElementsAre("0 gated", "1 gated"));
  EXPECT_EQ(plans_[0].algorithm, "fused");
  EXPECT_THAT(plans_[0].why, HasSubstr("256x64x64: fused 708 us, unfused 956 us"));
}

TEST_F(ChosenOnGpus, TheCallMayNameTheTransportOfFused) {
  (void)run([](int rank, AllGatherMatmul& one) {
    if (rank == 0) one.fused.transport = "pull";
  });
  EXPECT_THAT(plans_[0].config, HasSubstr("A pulled by own_matmul"));
  EXPECT_THAT(plans_[0].why, HasSubstr("A pulled by 16 blocks, 8 k-groups"));
  EXPECT_THAT(plans_[1].config, HasSubstr("all_gather/copy_engine beside own_matmul"));
  EXPECT_THAT(plans_[1].why, HasSubstr("A by copy engines"));
}

// Each is alike on both ranks, or in what ranks must have alike.
TEST_F(ChosenOnGpus, WhatRanksHaveAlikeMakesAllOfThemRunUnfused) {
  const int launches = gpus_.cuda.calls("launch");
  EXPECT_THAT(run([](int, AllGatherMatmul& one) { one.m = 255; }),
              UnorderedElementsAre("0 own", "1 own"));
  EXPECT_THAT(plans_[1].why, HasSubstr("M is not a multiple of 2 ranks"));
  // Nobody fuses then. So a rank whose own matrices do not allow it gathers as all do.
  EXPECT_THAT(run([](int rank, AllGatherMatmul& one) {
                one.m = 255;
                if (rank == 1) one.c = static_cast<std::byte*>(one.c) + 2;
              }),
              UnorderedElementsAre("0 own", "1 plain"));
  for (const AllGatherMatmulPlan& plan : plans_) {
    EXPECT_THAT(plan.config, StartsWith("all_gather_v/"));
    EXPECT_THAT(plan.config, Not(HasSubstr("copy_engine")));
  }
  const void* const plain[] = {take(gpus_.cuda.allocate(0, kPart)),
                               take(gpus_.cuda.allocate(1, kPart))};
  EXPECT_THAT(run([&](int rank, AllGatherMatmul& one) { one.a = plain[rank]; }),
              UnorderedElementsAre("0 own", "1 own"));
  EXPECT_THAT(plans_[0].why, HasSubstr("A has to be in symmetric memory"));
  // Rows of 63 elements are aligned on one rank only, which has gaps between them.
  EXPECT_THAT(run([](int rank, AllGatherMatmul& one) {
                one.n = 63;
                if (rank == 0) one.ldb = one.ldc = 64;
              }),
              UnorderedElementsAre("0 own", "1 plain"));
  EXPECT_EQ(plans_[0].algorithm, "unfused");
  EXPECT_GT(gpus_.cuda.calls("launch"), launches) << "kernels gather";
}

TEST_F(ChosenOnGpus, ARankThatAloneCannotRunFusedStillGathersAsTheOthers) {
  const int launches = gpus_.cuda.calls("launch");
  EXPECT_THAT(run([](int rank, AllGatherMatmul& one) {
                if (rank == 1) one.c = static_cast<std::byte*>(one.c) + 2;
              }),
              UnorderedElementsAre("0 gated", "1 plain"));
  EXPECT_EQ(plans_[0].algorithm, "fused");
  EXPECT_EQ(plans_[1].algorithm, "unfused");
  EXPECT_THAT(plans_[1].config, StartsWith("all_gather/copy_engine, plain_matmul"));
  EXPECT_THAT(plans_[1].why, HasSubstr("copy engines gather A, as on ranks that run fused"));
  EXPECT_EQ(gpus_.cuda.calls("launch"), launches) << "nothing needs an SM beside the matmul";
  // Both ranks' rows have come to rank 1; its own did not have to come to rank 0.
  const std::size_t shard = kRows / 2 * kDepth * 2;
  EXPECT_EQ(part(1, 3)[0], std::byte{1});
  EXPECT_EQ(part(1, 3)[shard], std::byte{2});
  EXPECT_EQ(part(0, 3)[shard], std::byte{2});
}

}  // namespace
}  // namespace tutti::test
