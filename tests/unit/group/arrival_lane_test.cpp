// The lane of all-gathers that a kernel waits for, on fakes: what is behind what, which numbers
// words get, and who ends the kernel's waits.
#include "executors/copy_engine/arrival_lane.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <memory>
#include <thread>

#include "fakes/fake_cuda.hpp"
#include "support/check.hpp"
#include "support/fake_gpus.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;

class ArrivalLaneTest : public testing::Test {
 protected:
  bool idle(Stream which) { return take(cuda.stream_finished(which)); }
  FakeCuda::Gate occupy(Stream busy) {
    auto gate = std::make_shared<std::atomic<bool>>(false);
    cuda.add_gate(busy, gate);
    return gate;
  }

  // Nothing behind it is done before the word is set.
  void wait_for(std::uint64_t& word) {
    const CudaMemoryOperation wait{CudaMemoryOperation::Kind::kWaitAtLeast, &word, 1};
    require_ok(cuda.memory_operations({&wait, 1}, stream));
  }

  FakeCuda cuda{std::make_shared<FakeCudaWorld>(1)};
  Stream stream = take(cuda.create_stream(0));
  std::unique_ptr<ArrivalLane> lane = take(ArrivalLane::create(cuda, 0));
};

TEST_F(ArrivalLaneTest, TheSideStreamIsBehindTheCallersAndTheCallersBehindIt) {
  const auto before = occupy(stream);
  const auto turn = take(lane->begin(stream));
  EXPECT_FALSE(idle(turn.side));
  *before = true;
  EXPECT_TRUE(idle(turn.side));
  const auto gathers = occupy(turn.side);
  require_ok(lane->end(stream));
  EXPECT_FALSE(idle(stream));
  EXPECT_FALSE(lane->drain(Deadline(milliseconds(1))));
  *gathers = true;
  EXPECT_TRUE(lane->drain(Deadline(milliseconds(1))));
  EXPECT_TRUE(idle(stream));
}

// A kernel of the next turn may not begin while one of this turn waits.
TEST_F(ArrivalLaneTest, TurnsFollowEachOtherWhateverTheirStream) {
  const Stream other = take(cuda.create_stream(0));
  EXPECT_EQ(take(lane->begin(stream)).number, 1u);
  const auto kernel = occupy(stream);
  require_ok(lane->end(stream));
  const auto turn = take(lane->begin(other));
  EXPECT_EQ(turn.number, 2u);
  EXPECT_FALSE(idle(other) || idle(turn.side));
  *kernel = true;
  EXPECT_TRUE(idle(other) && idle(turn.side));
  require_ok(lane->end(other));
}

// Before the numbers reach half of their range, from where on an old word would be ahead.
TEST_F(ArrivalLaneTest, WordsBeginAnewBeforeTheyCouldBeAhead) {
  constexpr std::uint32_t kLast = std::numeric_limits<std::int32_t>::max();
  lane = take(ArrivalLane::create(cuda, 0, kLast - 1));
  const auto last = take(lane->begin(stream));
  EXPECT_EQ(last.number, kLast);
  last.words[ArrivalLane::kWords - 1] = kLast;
  std::uint64_t kernel_ended = 0;
  wait_for(kernel_ended);
  require_ok(lane->end(stream));
  const auto first = take(lane->begin(stream));
  EXPECT_EQ(first.number, 1u);
  EXPECT_EQ(last.words[ArrivalLane::kWords - 1], kLast) << "it may still be read";
  std::atomic_ref(kernel_ended).store(1);
  EXPECT_TRUE(idle(stream));
  EXPECT_EQ(last.words[ArrivalLane::kWords - 1], 0u);
  require_ok(lane->end(stream));
}

TEST_F(ArrivalLaneTest, AFailedWaitIsToldOnceAndARelease) {
  const auto turn = take(lane->begin(stream));
  EXPECT_EQ(lane->new_failure(), nullptr);
  EXPECT_EQ(*turn.abort, 0u);
  turn.failure->chunk = 3;
  std::atomic_ref(turn.failure->failed).store(1);
  ASSERT_NE(lane->new_failure(), nullptr);
  EXPECT_EQ(lane->new_failure(), nullptr);
  lane->release();
  EXPECT_EQ(*turn.abort, 1u);
  require_ok(lane->end(stream));
}

// Of a communicator: its failure ends waits, and a wait that has failed is its failure.
TEST(ArrivalLanes, OfAGroupShareItsFailure) {
  for (const bool kernel_fails : {false, true}) {
    FakeGpus gpus(2);
    ArrivalLane* const lane = take(gpus.groups[0].impl().arrivals());
    EXPECT_EQ(take(gpus.groups[0].impl().arrivals()), lane);
    const Stream stream = gpus.make_stream(0);
    const auto turn = take(lane->begin(stream));
    require_ok(lane->end(stream));
    if (!kernel_fails) {
      gpus.groups[1].abort("enough");
      while (gpus.groups[0].status().is_ok()) std::this_thread::sleep_for(milliseconds(1));
      EXPECT_EQ(gpus.groups[0].status().code(), StatusCode::kAborted);
    } else {
      turn.failure->chunk = 5;
      turn.failure->epoch = 7;
      turn.failure->seen = 6;
      std::atomic_ref(turn.failure->failed).store(1);
      const Status status = gpus.groups[0].status();
      EXPECT_EQ(status.code(), StatusCode::kTimeout);
      EXPECT_EQ(
          status.message(),
          "a matmul on rank 0 waited too long for chunk 5 of the gathered A (epoch 7, seen 6)");
    }
    const std::atomic_ref aborted(*const_cast<std::uint32_t*>(turn.abort));
    for (int k = 0; k < 10000 && aborted.load() == 0; ++k) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_EQ(aborted.load(), 1u);
    require_ok(gpus.cuda.destroy_stream(stream));
  }
}

}  // namespace
}  // namespace tutti::test
