// The two streams of a rank, on GPUs that do not exist: what is enqueued where, and in which order.
#include <gtest/gtest.h>

#include "bench/overlap/kernels.hpp"
#include "bench/overlap/lanes.hpp"
#include "plain_memory.hpp"
#include "unit/group/nccl_group.hpp"

namespace tutti::cli {
namespace {

constexpr int kRanks = 2;
constexpr std::size_t kPartBytes = 8;

// Where a product was enqueued, and how many all_gathers of its rank before it.
struct Enqueued {
  Stream stream;
  std::size_t gathers_before;
};

// Of two elements; NCCL's set-up makes others.
std::vector<FakeNccl::Call> gathers_of(const FakeNccl& nccl, int rank) {
  std::vector<FakeNccl::Call> gathers = nccl.calls();
  std::erase_if(gathers, [&](const auto& call) {
    return call.name != "all_gather" || call.rank != rank || call.all_gather.bytes != kPartBytes;
  });
  return gathers;
}

class NotedMatmul final : public LibraryMatmul {
 public:
  NotedMatmul(const FakeNccl& nccl, int rank, std::vector<Enqueued>& log)
      : nccl_(nccl), rank_(rank), log_(log) {}
  Status run(const MatmulOperands&, Stream stream) override {
    log_.push_back({stream, gathers_of(nccl_, rank_).size()});
    return Status::ok();
  }
  std::string library() const override { return "none"; }

 private:
  const FakeNccl& nccl_;
  int rank_;
  std::vector<Enqueued>& log_;
};

// What one rank has enqueued for one sample of `phase`, behind what only gives a lead.
struct Seen {
  std::vector<Enqueued> products;
  std::vector<Stream> gathers;
  LaneTimes times;
};

Seen run_one(test::NcclGroup& group, int rank, Phase phase, bool dependent) {
  OverlapOptions options;
  options.bench.backend = Backend::kCuda;
  options.dependent = dependent;
  options.matmul = {.m = 2, .n = 2, .k = 2};
  std::byte matrices[3][16], part[kPartBytes];
  SymmetricMemory gathered = test::take(group.group(rank).allocate(16));
  PlainMemory memory;
  const Operands operands(memory,
                          {.matmul = options.matmul, .ranks = kRanks, .part_bytes = kPartBytes},
                          {.a = matrices[0],
                           .b = matrices[1],
                           .c = matrices[2],
                           .part = part,
                           .gathered = static_cast<std::byte*>(gathered.data())});
  Seen seen;
  auto lanes =
      test::take(make_cuda_lanes(group.cuda, group.group(rank), options, operands,
                                 std::make_unique<NotedMatmul>(group.nccl, rank, seen.products)));
  Act act{
      .phase = phase,
      .gather = {
          .input = part, .output = gathered.data(), .count = 2, .options = {.algorithm = "nccl"}}};
  Act* const acts[] = {&act};
  test::require_ok(lanes->sample(acts, 1, true));
  EXPECT_EQ(act.samples.size(), 1u);
  for (const FakeNccl::Call& call : gathers_of(group.nccl, rank)) {
    seen.gathers.push_back(call.all_gather.stream);
  }
  seen.times = act.samples.front();
  return seen;
}

std::vector<Seen> run_all(Phase phase, bool dependent = false) {
  test::NcclGroup group(kRanks);
  group.cuda.on_launch = [](const CudaLaunch&) { return Status::ok(); };
  const FakeCudaOpen before = group.cuda.open();
  std::vector<Seen> seen(kRanks);
  test::on_all_ranks(kRanks, [&](int rank) {
    seen[static_cast<std::size_t>(rank)] = run_one(group, rank, phase, dependent);
  });
  EXPECT_EQ(group.cuda.open().streams, before.streams);
  EXPECT_EQ(group.cuda.open().events, before.events);
  return seen;
}

TEST(CudaLanes, OverlapOnTwoStreams) {
  for (const Seen& seen : run_all(Phase::kOverlap)) {
    ASSERT_EQ(seen.gathers.size(), 1u);
    EXPECT_NE(seen.products.back().stream, seen.gathers.front());
    EXPECT_EQ(seen.products.back().gathers_before, 1u);  // whose kernels come first
    EXPECT_GT(seen.times.total, 0);
    EXPECT_GE(seen.times.total, seen.times.matmul);
    EXPECT_GE(seen.times.total, seen.times.gather);
  }
}

TEST(CudaLanes, OneAfterTheOtherOnOneStream) {
  for (const bool dependent : {false, true}) {
    for (const Seen& seen : run_all(Phase::kSequential, dependent)) {
      ASSERT_EQ(seen.gathers.size(), 1u);
      EXPECT_EQ(seen.products.back().stream, seen.gathers.front());
      EXPECT_EQ(seen.products.back().gathers_before, dependent ? 1u : 0u);
      EXPECT_GE(seen.times.total, seen.times.matmul + seen.times.gather - 0.1);
    }
  }
}

TEST(CudaLanes, EachAlone) {
  for (const Seen& seen : run_all(Phase::kMatmul)) {
    EXPECT_TRUE(seen.gathers.empty());
    EXPECT_GT(seen.products.size(), 0u);
    EXPECT_EQ(seen.times.gather, 0);
  }
  const std::size_t lead = run_all(Phase::kMatmul).front().products.size() - 1;
  for (const Seen& seen : run_all(Phase::kAllGather)) {
    EXPECT_EQ(seen.gathers.size(), 1u);
    EXPECT_EQ(seen.products.size(), lead);
    EXPECT_EQ(seen.times.matmul, 0);
  }
}

// Kernels that are not in the build are missed when the lanes are made, not in a sample.
TEST(CudaLanes, ClocksAndPausesNeedKernels) {
  if (clock_kernel() != nullptr) GTEST_SKIP() << "this build has them";
  test::NcclGroup group(kRanks);
  group.cuda.on_launch = [](const CudaLaunch&) { return Status::ok(); };
  test::on_all_ranks(kRanks, [&](int rank) {
    for (const bool clocks : {false, true}) {
      OverlapOptions options;
      options.clocks = clocks;
      options.pause_ms = clocks ? 0 : 1;
      PlainMemory memory;
      const Operands operands(memory, {}, {});
      std::vector<Enqueued> products;
      const auto lanes = make_cuda_lanes(group.cuda, group.group(rank), options, operands,
                                         std::make_unique<NotedMatmul>(group.nccl, rank, products));
      EXPECT_EQ(lanes.status().code(), StatusCode::kUnavailable);
    }
  });
}

}  // namespace
}  // namespace tutti::cli
