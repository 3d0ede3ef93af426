// Blocks of the gated matmul that bring A themselves, on one GPU: the shards of the other ranks are
// elsewhere in its memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "gated_gpu_fixture.hpp"

namespace tutti {
namespace {

using test::gated_cases;
using test::GatedCase;
using test::GatedMatmulOnGpu;
using test::kFlagWords;
using test::kMostWaitNs;
using test::require_ok;

class PulledMatmulOnGpu : public GatedMatmulOnGpu {
 protected:
  // Sizes that parts, steps and k-groups divide, and do not; shards without rows; k-groups without
  // columns.
  static std::vector<GatedCase> pulled_cases() {
    std::vector<GatedCase> cases;
    int choice = 0;
    for (GatedCase with : gated_cases()) {
      if (with.plan.shards == 1) continue;
      for (const int k_groups : {1, 3, 8}) {
        with.plan.chunks = 1;
        with.plan.k_groups = k_groups;
        with.plan.shard_groups = choice % std::min(with.plan.shards, 3);
        with.shape.dtype = choice % 2 == 0 ? DataType::kBfloat16 : DataType::kFloat16;
        with.shape.layout =
            choice / 2 % 2 == 0 ? MatrixLayout::kRowMajor : MatrixLayout::kColumnMajor;
        with.own_a = choice % 5 != 0;
        cases.push_back(with);
        ++choice;
      }
    }
    return cases;
  }

  void SetUp() override {
    GatedMatmulOnGpu::SetUp();
    if (IsSkipped()) return;
    const std::vector<std::uint32_t> zeros(kFlagWords);
    const std::size_t bytes = zeros.size() * sizeof zeros[0];
    counters_ = reinterpret_cast<std::uint32_t*>(allocate(bytes));
    require_ok(cuda_->copy(counters_, zeros.data(), bytes));
  }

  // The shards have longer rows than A.
  Arrival pulled(const Placed& placed, std::uint32_t epoch, int pullers) {
    const std::size_t row = placed.row_bytes(), pitch = row + 48, m = placed.with.shape.m;
    std::byte* const host = pinned(m * pitch);
    std::memset(host, 0xFF, m * pitch);
    const std::size_t columns = placed.with.shape.k * 2;
    for (std::size_t i = 0; i < m; ++i) {
      std::memcpy(host + i * pitch, placed.whole_a + i * row, columns);
    }
    const CudaAddress shards = allocate(m * pitch);
    require_ok(cuda_->copy(shards, host, m * pitch));
    Arrival arrival = arrival_of(placed, epoch);
    arrival.pull = {.pullers = pullers, .lda = pitch / 2, .to = placed.a, .counters = counters_};
    for (int shard = 0; shard < placed.with.plan.shards; ++shard) {
      const std::size_t first = static_cast<std::size_t>(shard) * placed.with.shard_rows();
      arrival.pull.shard[shard] = shards + std::min(first, m) * pitch;
    }
    return arrival;
  }
  void go(const Placed& placed, const std::uint32_t* epoch) {
    raise(placed.with.plan.flags(), epoch);
  }

  void expect_counters_at_zero() {
    std::vector<std::uint32_t> counters(kFlagWords, 7);
    require_ok(cuda_->copy(counters.data(), counters_, counters.size() * sizeof counters[0]));
    EXPECT_EQ(counters, std::vector<std::uint32_t>(kFlagWords));
  }

  std::uint32_t* counters_ = nullptr;
};

TEST_F(PulledMatmulOnGpu, HasTheBitsOfThePlainMatmul) {
  int choice = 0;
  for (const GatedCase& with : pulled_cases()) {
    const std::unique_ptr<Placed> placed = place(with);
    const std::uint32_t epoch = words_->epochs[0] = 0xFFFFFFFF + static_cast<unsigned>(choice);
    const int pullers = (std::array{2, 8, 20})[static_cast<std::size_t>(choice++ % 3)];
    SCOPED_TRACE(testing::Message()
                 << "M " << with.shape.m << ", K " << with.shape.k << ", " << with.plan.shards
                 << " shards in " << with.plan.shard_groups << " groups, " << with.plan.k_groups
                 << " k-groups, " << pullers << " pullers");
    poison(*placed, false, epoch);
    run(*placed, pulled(*placed, epoch, pullers));
    if (choice % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    go(*placed, &words_->epochs[0]);
    expect_plain_bits(*placed);
    expect_counters_at_zero();
  }
}

// A's rows are NaN again before each call, but the flags are as the last call left them.
TEST_F(PulledMatmulOnGpu, CallsWithoutSynchronisation) {
  constexpr std::uint32_t kFirst = 0xFFFFFFFE;
  GatedCase with = pulled_cases()[1];
  std::vector<std::unique_ptr<Placed>> calls;
  std::vector<Arrival> arrivals;
  for (std::uint32_t i = 0; i < 4; ++i) {
    calls.push_back(place(with));
    arrivals.push_back(pulled(*calls.back(), kFirst + i, i % 2 == 0 ? 16 : 8));
  }
  for (const auto& placed : calls) poison(*placed, false, kFirst);
  for (std::uint32_t i = 0; i < 4; ++i) {
    words_->epochs[i] = kFirst + i;
    run(*calls[i], arrivals[i]);
  }
  for (std::uint32_t i = 0; i < 4; ++i) go(*calls[i], &words_->epochs[i]);
  for (const auto& placed : calls) expect_plain_bits(*placed);
  expect_counters_at_zero();
}

TEST_F(PulledMatmulOnGpu, APastDeadlineOfTheGoWordIsNamed) {
  const std::unique_ptr<Placed> placed = place(pulled_cases()[2]);
  poison(*placed, false, 40);
  Arrival arrival = pulled(*placed, 40, 8);
  arrival.timeout_ns = 20'000'000;
  run(*placed, arrival);
  require_ok(cuda_->synchronize(stream_));
  EXPECT_EQ(words_->failure.failed, 1U);
  EXPECT_GE(words_->failure.chunk, 0);
  EXPECT_LE(words_->failure.chunk, placed->with.plan.flags());  // a tile may be the first
  expect_counters_at_zero();
  poison(*placed, false, 41);  // the next call
  words_->epochs[0] = arrival.epoch = 41;
  arrival.timeout_ns = kMostWaitNs;
  run(*placed, arrival);
  go(*placed, &words_->epochs[0]);
  expect_plain_bits(*placed);
}

}  // namespace
}  // namespace tutti
