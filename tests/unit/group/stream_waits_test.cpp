// Waits of streams for single words (StreamWaits), on fakes: what lets a stream go on, and what the
// host sees of a wait.
#include "executors/copy_engine/stream_waits.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "fakes/fake_cuda.hpp"
#include "support/check.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;

constexpr int kWaitingRanks = 3, kCallersNumber = kPipelineStreams - 1;
constexpr std::uint64_t kUsualNs = 60'000'000'000;
constexpr std::uint32_t kCallSignature = 7;

// The pages of three ranks in this process, and the streams of ranks 0 and 1.
class StreamWaitsTest : public ::testing::Test {
 protected:
  StreamWaitsTest() {
    for (int rank = 0; rank < kWaitingRanks; ++rank) {
      memory_.push_back(std::make_unique<PipelinePage>());
      open_page(*memory_.back(), kWaitingRanks);
      pages_.push_back(memory_.back().get());
    }
  }

  StreamWaits::Call call(std::uint64_t epoch) {
    return {.epoch = epoch, .sequence = 40 + epoch, .signature = kCallSignature};
  }
  static PipelineWord word(int writer, int index = 0, int slot = 0) {
    return {.slot = slot, .writer = writer, .index = index};
  }
  void await(std::uint64_t epoch, const PipelineWord& awaited, int number = 0) {
    require_ok(waits_.await(call(epoch), awaited, number, number == 0 ? stream_ : other_));
  }
  void signal(std::uint64_t epoch, const PipelineWord& written) {
    StreamWaits& writer = written.writer == 1 ? peer_ : third_;
    require_ok(writer.signal(call(epoch), 0, written, peers_));
  }
  bool idle(Stream stream) { return take(cuda_.stream_finished(stream)); }

  FakeCuda cuda_{std::make_shared<FakeCudaWorld>(1)};
  Stream stream_ = take(cuda_.create_stream(0)), other_ = take(cuda_.create_stream(0)),
         peers_ = take(cuda_.create_stream(0));
  std::vector<std::unique_ptr<PipelinePage>> memory_;
  BarrierPages pages_;
  StreamWaits waits_{cuda_, 0, pages_, pages_}, peer_{cuda_, 1, pages_, pages_},
      third_{cuda_, 2, pages_, pages_};
};

TEST_F(StreamWaitsTest, AStreamGoesOnWhenItsWordHasCome) {
  await(1, word(1));
  for (const PipelineWord& wrong : {word(2), word(1, 1), word(1, 0, 1)}) {
    signal(1, wrong);
    EXPECT_FALSE(idle(stream_));
  }
  PipelineWord done = word(1);
  done.is_done = true;
  signal(1, done);
  EXPECT_FALSE(idle(stream_));
  signal(1, word(1));
  EXPECT_TRUE(idle(stream_));
  await(2, word(1));
  EXPECT_FALSE(idle(stream_)) << "the word is of the call before";
  signal(2, word(1));
  EXPECT_TRUE(idle(stream_));
  EXPECT_FALSE(waits_.waiting());
}

TEST_F(StreamWaitsTest, AWaitIsKnownByItsStream) {
  EXPECT_FALSE(waits_.look(0, 0));
  await(1, word(1), kCallersNumber);
  await(1, word(2));
  signal(1, word(1));
  const auto record = waits_.look(0, 0);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->missing_rank, 2);
  EXPECT_EQ(record->waiting_rank, 0);
  EXPECT_EQ(record->sequence, 41u);
  EXPECT_EQ(record->expected_epoch, 1u);
  EXPECT_EQ(record->seen_epoch, 0u);
  EXPECT_EQ(static_cast<FailureReason>(record->reason), FailureReason::kTimeout);
  EXPECT_EQ(waits_.waiting()->missing_rank, 2);
  signal(1, word(2));
  EXPECT_TRUE(idle(stream_));
  EXPECT_FALSE(waits_.look(0, 0));
}

// What is behind a wait has not begun. Its time counts from where its stream has come to it.
TEST_F(StreamWaitsTest, ADeadlineIsThatOfTheWaitThatAStreamIsIn) {
  await(1, word(1));
  await(2, word(2));
  EXPECT_FALSE(waits_.look(kUsualNs, 0));
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(waits_.look(20'000'000, 0)->missing_rank, 1);
  signal(1, word(1));
  EXPECT_FALSE(idle(stream_));
  EXPECT_FALSE(waits_.look(20'000'000, 0)) << "it has just begun";
  EXPECT_EQ(waits_.waiting()->missing_rank, 2);
}

TEST_F(StreamWaitsTest, ACallsOwnDeadlineIsTakenFirst) {
  StreamWaits::Call hasty = call(1);
  hasty.timeout_ns = 1;
  require_ok(waits_.await(hasty, word(1), 0, stream_));
  EXPECT_FALSE(idle(stream_));
  (void)waits_.look(kUsualNs, 0);
  std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(waits_.look(kUsualNs, 0));
}

// In the second look: what it wrote before it left may still have been under way.
TEST_F(StreamWaitsTest, ARankThatHasLeftIsNotWaitedFor) {
  await(1, word(2));
  EXPECT_FALSE(waits_.look(kUsualNs, Notice::left(1)));
  EXPECT_FALSE(waits_.look(kUsualNs, Notice::left(2)));
  const auto record = waits_.look(kUsualNs, Notice::left(2));
  ASSERT_TRUE(record);
  EXPECT_EQ(static_cast<FailureReason>(record->reason), FailureReason::kLeft);
}

// A rank that has given up lets its own streams go on, whose signals are false.
TEST_F(StreamWaitsTest, NobodyBelievesARankThatHasGivenUp) {
  await(1, word(1));
  leave_peers(pages_, 1);
  signal(1, word(1));
  EXPECT_FALSE(idle(stream_));
  EXPECT_EQ(waits_.waiting()->missing_rank, 1);
}

// The last wait of a stream stays in sight until the host has seen that it ended.
TEST_F(StreamWaitsTest, AnIdleStreamDoesNotWaitForARankThatGivesUp) {
  await(1, word(1));
  signal(1, word(1));
  EXPECT_TRUE(idle(stream_));
  EXPECT_FALSE(waits_.look(kUsualNs, 0));
  leave_peers(pages_, 1);
  EXPECT_FALSE(waits_.waiting());
  EXPECT_FALSE(waits_.look(0, 0));
}

// Whatever has been enqueued, and is enqueued after that. A peer's late signal does not matter: the
// host repeats it.
TEST_F(StreamWaitsTest, AReleaseEndsAllWaits) {
  await(1, word(1));
  await(2, word(2));
  await(2, word(1, 63, 15), kCallersNumber);
  const auto release = [&] {
    end_barriers(pages_, 0, {});
    waits_.release();
  };
  release();
  EXPECT_TRUE(idle(stream_) && idle(other_));
  EXPECT_FALSE(waits_.look(0, 0));
  signal(1, word(2));
  await(3, word(2));
  EXPECT_FALSE(idle(stream_));
  release();
  EXPECT_TRUE(idle(stream_));
}

}  // namespace
}  // namespace tutti::test
