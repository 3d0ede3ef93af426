// The benchmark of a gated matmul on a GPU that does not exist: its kernels compute on the host,
// and note what they are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "bench/all_gather_matmul/measure.hpp"
#include "bench/inputs.hpp"
#include "fakes/fake_cuda.hpp"
#include "machines.hpp"
#include "matmul/host.hpp"

namespace tutti::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kMultiprocessors = 4;

std::shared_ptr<FakeCudaWorld> hopper_world() {
  auto world = std::make_shared<FakeCudaWorld>(1);
  CudaDeviceProperties& properties = world->devices.front();
  properties.compute_major = 9;
  properties.compute_minor = 0;
  properties.multiprocessors = kMultiprocessors;
  properties.l2_bytes = 0;  // one set of matrices suffices
  return world;
}

class GatedBench : public testing::Test {
 protected:
  GatedBench() {
    auto device = make_cuda_matmul_device(fake_, nullptr);
    EXPECT_TRUE(device.is_ok()) << device.status().to_string();
    device_ = std::move(*device);
    options_.matmul.bench.backend = Backend::kCuda;
    options_.matmul.bench.iterations = 3;
    options_.matmul.bench.warmup = 0;
    options_.orders = {ArrivalOrder::kPlain, ArrivalOrder::kRotated, ArrivalOrder::kFrontier};
    options_.ranks = 3;
    options_.chunks = 2;
  }

  GatedPlace place() {
    return {
        .cuda = fake_,
        .device = *device_,
        .kernels = {
            .own = true,
            .load_own = [](auto&&...) { return Status::ok(); },
            .run_own = [this](CudaDriver&, const CheckedMatmul& call, const MatmulTiling&, int,
                              Stream stream) { return enqueue(call, stream); },
            .load_gated = [](auto&&...) { return Status::ok(); },
            .run_gated =
                [this](CudaDriver&, const GatedMatmul& matmul, int multiprocessors, Stream stream) {
                  const Arrival& arrival = matmul.arrival;
                  EXPECT_EQ(multiprocessors, kMultiprocessors);
                  last_.insert_or_assign(arrival.plan.order, arrival);
                  read_from_ = static_cast<const std::byte*>(matmul.call.a);
                  if (on_gated) on_gated(arrival);
                  return enqueue(matmul.call, stream, arrival.plan.order == defect_);
                },
            .add_library =
                [](CudaDriver&, const MatmulSets&, MatmulArms& arms) {
                  arms.skipped.push_back({.algorithm = "cublaslt_matmul", .why = "absent"});
                }}};
  }

  // Writes what the host computes; a defect is in the lowest bit of the last element.
  Status enqueue(const CheckedMatmul& call, Stream stream, bool defect = false) {
    const MatmulProblem& problem = call.problem;
    const std::size_t bytes = problem.m * problem.columns() * size_of(problem.dtype);
    std::vector<std::byte>& result = results_[defect ? 1 : 0];
    if (result.empty()) {
      result.resize(bytes);
      CheckedMatmul on_host = call;
      on_host.product[0].c = result.data();
      run_host_matmul(on_host, nullptr);
      if (defect) result[bytes - 2] ^= std::byte{1};
    }
    return fake_.copy_async(call.product[0].c, result.data(), bytes, stream);
  }

  Result<MeasuredMatmul> measure(const std::string& tile = "") {
    return measure_gated(place(), options_,
                         {.extents = {300, 64, 32}, .dtype = DataType::kBfloat16}, tile);
  }
  MeasuredMatmul measured(const std::string& tile = "") {
    auto result = measure(tile);
    EXPECT_TRUE(result.is_ok()) << result.status().to_string();
    return result.is_ok() ? *result : MeasuredMatmul{};
  }

  FakeCuda fake_{hopper_world()};
  std::unique_ptr<MatmulDevice> device_;
  AllGatherMatmulOptions options_;
  std::optional<ArrivalOrder> defect_;
  std::function<void(const Arrival&)> on_gated;
  std::map<ArrivalOrder, Arrival> last_;
  const std::byte* read_from_ = nullptr;  // by the last gated kernel
  std::array<std::vector<std::byte>, 2> results_;
};

TEST_F(GatedBench, HasARowOfEachOrderAndOfTheMatmulAlone) {
  const MeasuredMatmul all = measured();
  std::vector<std::string> names;
  for (const Row& row : all.rows) {
    names.push_back(row.algorithm);
    EXPECT_EQ(row.collective, "all_gather_matmul");
    EXPECT_EQ(row.wrong, 0u) << row.algorithm;
    EXPECT_EQ(row.time_us.n, 3u);
    ASSERT_TRUE(row.matmul && row.matmul->arrival);
    EXPECT_EQ(row.matmul->arrival->arrival, "open");
    EXPECT_EQ(row.matmul->arrival->ranks, 3);
    EXPECT_EQ(row.matmul->arrival->bound_us, 0);
  }
  EXPECT_THAT(names, ElementsAre("own_matmul_only", "fused_plain_order", "fused_rotated",
                                 "fused_frontier"));
  EXPECT_EQ(all.rows[0].matmul->arrival->over_own, 1);
  EXPECT_TRUE(all.rows[0].matmul->noise.has_value());
  EXPECT_EQ(all.rows[0].matmul->arrival->predicted_us, 0);
  EXPECT_GT(all.rows[2].matmul->arrival->predicted_us, 0);
  EXPECT_EQ(all.rows[2].matmul->arrival->order, "rotated");
  EXPECT_THAT(all.rows[2].matmul->config, HasSubstr(", rotated order, 3 x 2 chunks, open"));
  ASSERT_EQ(all.skipped.size(), 1u);
}

TEST_F(GatedBench, OpenFlagsAreOpenForEveryEpoch) {
  on_gated = [this](const Arrival& arrival) {
    EXPECT_EQ(arrival.replay, nullptr);
    EXPECT_EQ(arrival.replayed, 0);
    std::array<std::uint32_t, 6> flags{};
    ASSERT_TRUE(fake_.copy(flags.data(), arrival.flags, sizeof flags).is_ok());
    for (const std::uint32_t flag : flags) {
      EXPECT_GE(static_cast<std::int32_t>(flag - arrival.epoch), 0);
      EXPECT_GE(static_cast<std::int32_t>(flag - (1U << 20U)), 0);
    }
  };
  measured();
  EXPECT_EQ(last_.size(), 3u);
}

TEST_F(GatedBench, AReplayBeginsWithClosedFlagsAndEveryOperationHasItsEpoch) {
  options_.arrival = ArrivalKind::kModel;
  options_.arrival_text = "model";
  options_.orders = {ArrivalOrder::kRotated};
  std::uint32_t before = 0;
  int begun = 0;
  std::array<ReplayedArrival, 4> replay{};
  on_gated = [&](const Arrival& arrival) {
    if (arrival.epoch == 1) {
      ++begun;
      ASSERT_EQ(arrival.replayed, 4);  // all chunks but those of the own shard
      std::array<std::uint32_t, 6> flags{};
      ASSERT_TRUE(fake_.copy(replay.data(), arrival.replay, sizeof replay).is_ok());
      ASSERT_TRUE(fake_.copy(flags.data(), arrival.flags, sizeof flags).is_ok());
      EXPECT_THAT(flags, testing::Each(0u));
    } else {
      EXPECT_EQ(arrival.epoch, before + 1);
    }
    before = arrival.epoch;
    EXPECT_GE(arrival.timeout_ns, 2'000'000'000u);
  };
  const MeasuredMatmul all = measured();
  EXPECT_EQ(begun, 3);  // two runs, and what is captured
  EXPECT_EQ(replay[0].chunk, 2);
  EXPECT_GT(replay[3].ns, replay[2].ns);
  const ArrivalRow& row = *all.rows[1].matmul->arrival;
  EXPECT_DOUBLE_EQ(row.last_us, static_cast<double>(replay[3].ns) / 1e3);
  EXPECT_EQ(row.bound_us, std::max(row.last_us, all.rows[0].time_us.p50));
  EXPECT_DOUBLE_EQ(row.over_bound, all.rows[1].time_us.p50 / row.bound_us);
  EXPECT_THAT(row.trace, HasSubstr("modelled: one copy engine over NVLink, start 6 us, 2.5 us per "
                                   "operation, 359 GB/s, jitter 5 %, seed 1"));
  EXPECT_GE(row.predicted_us, row.last_us);
  const PredictedParts& parts = row.parts;
  EXPECT_NEAR(parts.forecast_us + parts.clock_us + parts.deficit_us + parts.order_us +
                  parts.gating_us + parts.contention_us,
              row.predicted_us, 1e-9);
  EXPECT_EQ(parts.contention_us, 0);  // flags alone arrive
}

TEST_F(GatedBench, TheOwnShardIsReadFromItsOwnRows) {
  options_.own = 2;
  std::ptrdiff_t distance = -1;
  on_gated = [&](const Arrival& arrival) {
    const auto pointer = fake_.pointer(arrival.own_a);
    ASSERT_TRUE(pointer.is_ok());
    distance = static_cast<const std::byte*>(arrival.own_a) - pointer->base;
  };
  measured();
  const Arrival& arrival = last_.at(ArrivalOrder::kFrontier);
  EXPECT_EQ(arrival.plan,
            (ArrivalPlan{.shards = 3, .chunks = 2, .own = 2, .order = ArrivalOrder::kFrontier}));
  EXPECT_EQ(arrival.own_lda, 32u);
  EXPECT_EQ(distance, 200 * 32 * 2);
}

TEST_F(GatedBench, ABitThatDiffersIsFound) {
  defect_ = ArrivalOrder::kRotated;
  const MeasuredMatmul all = measured();
  EXPECT_EQ(all.rows[1].wrong, 0u);
  EXPECT_GE(all.rows[2].wrong, 2u);  // before the samples and after them
  EXPECT_EQ(all.rows[3].wrong, 0u);
  ASSERT_EQ(all.wrong.size(), 1u);
  EXPECT_THAT(all.wrong[0], HasSubstr("WRONG RESULT of fused_rotated, m 300, n 64, k 32: "));
  EXPECT_THAT(all.wrong[0], HasSubstr("first row 299, column 63"));
}

TEST_F(GatedBench, AWaitInVainEndsTheMeasurement) {
  on_gated = [this](const Arrival& arrival) {
    if (arrival.plan.order != ArrivalOrder::kFrontier) return;
    const GateFailure failure{.failed = 1, .chunk = 3, .epoch = 7, .seen = 6};
    EXPECT_TRUE(fake_.copy(arrival.failure, &failure, sizeof failure).is_ok());
  };
  const auto result = measure();
  EXPECT_EQ(result.status().code(), StatusCode::kTimeout);
  EXPECT_EQ(result.status().message(),
            "fused_frontier: a tile waited in vain for chunk 1 of shard 1: its flag is 6, not 7");
}

TEST_F(GatedBench, WithoutTheGatedKernelTheMatmulAloneIsMeasured) {
  GatedPlace without = place();
  without.kernels.load_gated = [](auto&&...) {
    return Status(StatusCode::kUnsupported, "no gated matmul");
  };
  const auto result = measure_gated(without, options_,
                                    {.extents = {300, 64, 32}, .dtype = DataType::kBfloat16}, "");
  ASSERT_TRUE(result.is_ok()) << result.status().to_string();
  EXPECT_EQ(result->rows.size(), 1u);
  ASSERT_EQ(result->skipped.size(), 4u);
  EXPECT_EQ(result->skipped[1].algorithm, "fused_rotated");
  EXPECT_EQ(result->skipped[1].why, "no gated matmul");
}

TEST_F(GatedBench, WhatTheOwnKernelCannotRunIsRefused) {
  GatedPlace other = place();
  other.kernels.own = false;
  const auto result =
      measure_gated(other, options_, {.extents = {300, 64, 32}, .dtype = DataType::kBfloat16}, "");
  EXPECT_EQ(result.status().code(), StatusCode::kUnsupported);
  EXPECT_EQ(result.status().message(),
            "own_matmul: this build was not compiled for architecture 90a");
}

TEST_F(GatedBench, ATileIsForced) {
  const MeasuredMatmul all = measured("128x128");
  ASSERT_EQ(all.rows.size(), 4u);
  for (const Row& row : all.rows) {
    EXPECT_EQ(row.matmul->tile, "128x128");
    EXPECT_THAT(row.matmul->config, HasSubstr("128x128x64"));
  }
}

TEST_F(GatedBench, AComesFromTheHostBeforeTheKernelAndEachChunkHasItsFlag) {
  device_ = std::move(*make_cuda_matmul_device(fake_, nullptr, {.calls = 3}));
  options_.arrival = ArrivalKind::kHost;
  options_.arrival_text = "host";
  options_.orders = {ArrivalOrder::kRotated};
  constexpr std::size_t kShardBytes = 100 * 64;
  std::vector<std::byte> whole(3 * kShardBytes), others(2 * kShardBytes), own(kShardBytes);
  tile(whole, Numbers(DataType::kBfloat16, 0).period());
  int checked = 0;
  on_gated = [&](const Arrival& arrival) {
    std::array<std::uint32_t, 6> flags{};
    ASSERT_TRUE(fake_.copy(flags.data(), arrival.flags, sizeof flags).is_ok());
    const std::uint32_t now = arrival.epoch;
    EXPECT_THAT(flags, ElementsAre(0u, 0u, now, now, now, now));
    EXPECT_EQ(arrival.replayed, 0);
    ASSERT_TRUE(fake_.copy(others.data(), read_from_ + kShardBytes, others.size()).is_ok());
    EXPECT_TRUE(std::equal(others.begin(), others.end(), whole.begin() + kShardBytes));
    ASSERT_TRUE(fake_.copy(own.data(), read_from_, own.size()).is_ok());
    EXPECT_THAT(own, testing::Each(std::byte{kPoison}));  // is read elsewhere
    ++checked;
  };
  const MeasuredMatmul all = measured();
  EXPECT_GT(checked, 9);
  ASSERT_EQ(all.rows.size(), 3u);
  EXPECT_EQ(all.rows[1].algorithm, "arrival_only");
  EXPECT_EQ(all.rows[1].wrong, std::nullopt);
  EXPECT_EQ(all.rows[1].matmul->tflops, 0);
  const ArrivalRow& row = *all.rows[2].matmul->arrival;
  EXPECT_EQ(all.rows[2].wrong, 0u);
  EXPECT_EQ(row.last_us, all.rows[1].time_us.p50);
  EXPECT_EQ(row.bound_us, std::max(row.last_us, all.rows[0].time_us.p50));
  EXPECT_EQ(row.predicted_us, 0);
  EXPECT_THAT(all.rows[2].matmul->config, HasSubstr("3 x 2 chunks, copied"));
  device_.reset();
  EXPECT_EQ(fake_.open(), FakeCudaOpen{});
}

TEST_F(GatedBench, NothingIsLeftOpen) {
  measured();
  device_.reset();
  EXPECT_EQ(fake_.open(), FakeCudaOpen{});
}

}  // namespace
}  // namespace tutti::cli
