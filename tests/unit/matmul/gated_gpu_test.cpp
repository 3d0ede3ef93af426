// The gated matmul on a GPU, against the bits of the plain one.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "gated_gpu_fixture.hpp"

namespace tutti {
namespace {

using test::ChunkOfRows;
using test::gated_cases;
using test::GatedCase;
using test::GatedMatmulOnGpu;
using test::kMostWaitNs;
using test::require_ok;
using test::take;

TEST_F(GatedMatmulOnGpu, AReplayHasTheBitsOfThePlainMatmul) {
  auto* const replay =
      reinterpret_cast<ReplayedArrival*>(allocate(kMostArrivalFlags * sizeof(ReplayedArrival)));
  each_case([&](Placed& placed) {
    const auto epoch = static_cast<std::uint32_t>(random_());
    poison(placed, true, epoch);
    std::vector<ChunkOfRows> chunks = placed.with.chunks();
    std::shuffle(chunks.begin(), chunks.end(), random_);
    std::vector<ReplayedArrival> arrivals;
    std::uint64_t ns = 0;
    for (const ChunkOfRows& chunk : chunks)
      arrivals.push_back({ns += random_() % 20000, chunk.flag});
    if (!arrivals.empty()) {
      require_ok(cuda_->copy(replay, arrivals.data(), arrivals.size() * sizeof arrivals[0]));
    }
    Arrival arrival = arrival_of(placed, epoch);
    arrival.replay = replay;
    arrival.replayed = static_cast<int>(arrivals.size());
    run(placed, arrival);
    expect_plain_bits(placed);
  });
}

// The kernel spins while copy engines bring A from the host.
TEST_F(GatedMatmulOnGpu, ChunksThatComeWhileItRuns) {
  each_case([&](Placed& placed) {
    const auto epoch = static_cast<std::uint32_t>(random_());
    words_->epochs[0] = epoch;
    poison(placed, false, epoch);
    std::vector<ChunkOfRows> chunks = placed.with.chunks();
    std::shuffle(chunks.begin(), chunks.end(), random_);
    run(placed, arrival_of(placed, epoch));
    for (const ChunkOfRows& chunk : chunks) {
      if (random_() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
      bring(placed, chunk);
      raise(chunk.flag, &words_->epochs[0]);
    }
    expect_plain_bits(placed);
  });
}

// So the tests above see a wait that is left out.
TEST_F(GatedMatmulOnGpu, AFlagBeforeItsDataIsSeen) {
  for (GatedCase with : gated_cases()) {
    if (with.shape.m != 2048 && with.plan.k_groups == 1) continue;
    with.shape.dtype = DataType::kBfloat16;
    const std::unique_ptr<Placed> placed = place(with);
    for (const ChunkOfRows& late : with.chunks()) {
      const std::uint32_t epoch = words_->epochs[0] = 5;
      poison(*placed, false, epoch);
      for (const ChunkOfRows& chunk : with.chunks()) {
        if (chunk.flag != late.flag) bring(*placed, chunk);
        raise(chunk.flag, &words_->epochs[0]);
      }
      run(*placed, arrival_of(*placed, epoch));
      EXPECT_FALSE(products_of(*placed) == placed->expected) << "flag " << late.flag;
    }
  }
}

TEST_F(GatedMatmulOnGpu, CallsWithoutSynchronisationHaveEpochsThatWrap) {
  constexpr std::uint32_t kFirst = 0xFFFFFFFE;
  GatedCase with = gated_cases()[1];
  with.shape.dtype = DataType::kBfloat16;
  with.plan.order = ArrivalOrder::kRotated;
  std::vector<std::unique_ptr<Placed>> calls;
  for (int i = 0; i < 4; ++i) calls.push_back(place(with));
  for (const auto& placed : calls) poison(*placed, false, kFirst);
  for (std::uint32_t i = 0; i < 4; ++i) {
    words_->epochs[i] = kFirst + i;
    run(*calls[i], arrival_of(*calls[i], kFirst + i));
  }
  for (std::uint32_t i = 0; i < 4; ++i) {
    for (const ChunkOfRows& chunk : with.chunks()) {
      bring(*calls[i], chunk);
      raise(chunk.flag, &words_->epochs[i]);
    }
  }
  for (const auto& placed : calls) expect_plain_bits(*placed);
}

TEST_F(GatedMatmulOnGpu, APastDeadlineEndsItAndNamesTheChunk) {
  GatedCase with = gated_cases().front();
  with.shape.dtype = DataType::kFloat16;
  const std::unique_ptr<Placed> placed = place(with);
  for (const int missing : {0, 5}) {
    const std::uint32_t epoch = words_->epochs[0] = 40;
    poison(*placed, true, epoch);
    for (const ChunkOfRows& chunk : with.chunks()) {
      if (chunk.flag != missing) raise(chunk.flag, &words_->epochs[0]);
    }
    require_ok(cuda_->synchronize(copies_));
    Arrival arrival = arrival_of(*placed, epoch);
    arrival.timeout_ns = 20'000'000;
    run(*placed, arrival);
    require_ok(cuda_->synchronize(stream_));
    EXPECT_EQ(words_->failure.failed, 1U);
    EXPECT_EQ(words_->failure.chunk, missing);
    EXPECT_EQ(words_->failure.epoch, epoch);
    EXPECT_EQ(words_->failure.seen, epoch - 1);
  }
  poison(*placed, false, 41);  // the GPU still computes
  words_->epochs[0] = 41;
  run(*placed, arrival_of(*placed, 41));
  for (const ChunkOfRows& chunk : with.chunks()) {
    bring(*placed, chunk);
    raise(chunk.flag, &words_->epochs[0]);
  }
  expect_plain_bits(*placed);
}

TEST_F(GatedMatmulOnGpu, TheGroupsFailureEndsIt) {
  GatedCase with = gated_cases().front();
  with.shape.dtype = DataType::kBfloat16;
  const std::unique_ptr<Placed> placed = place(with);
  poison(*placed, true, 9);
  const auto begin = std::chrono::steady_clock::now();
  run(*placed, arrival_of(*placed, 9));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(take(cuda_->stream_finished(stream_)));
  std::atomic_ref(words_->abort).store(1);
  require_ok(cuda_->synchronize(stream_));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(words_->failure.failed, 2U);
}

}  // namespace
}  // namespace tutti
