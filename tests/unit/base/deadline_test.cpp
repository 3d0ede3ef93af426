// The clock of deadlines: what it makes of pauses of the process.
#include "base/deadline.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "support/ranks.hpp"

namespace tutti {
namespace {

using device::impl::RunningTime;
using namespace std::chrono_literals;

constexpr std::int64_t kMs = 1'000'000, kHour = 3'600'000 * kMs;
constexpr std::int64_t kStep = RunningTime::kLongestStep;

TEST(RunningTimeTest, GoesOnLikeTheClockThatItIsToldWhereItIsLookedAt) {
  RunningTime time;
  const std::int64_t start = time.at(5 * kHour);
  for (std::int64_t passed = 0; passed < 10 * kHour; passed += kStep) {
    ASSERT_EQ(time.at(5 * kHour + passed), start + passed);
  }
}

TEST(RunningTimeTest, APauseIsNoTime) {
  RunningTime time;
  std::int64_t now = kHour;
  const std::int64_t start = time.at(now);
  for (std::int64_t pauses = 1; pauses <= 3; ++pauses) {
    now += kHour;
    EXPECT_EQ(time.at(now), start + pauses * kStep) << "but for a step";
    EXPECT_EQ(time.at(now), start + pauses * kStep);
  }
  EXPECT_EQ(time.at(now + 7 * kMs), start + 3 * kStep + 7 * kMs);
}

// Looks that are not noted, since they are close to one that is, are no pause together.
TEST(RunningTimeTest, ManyShortStepsAreNoPause) {
  RunningTime time;
  const std::int64_t start = time.at(kHour);
  for (std::int64_t passed = 0; passed < 20 * kStep; passed += kMs) {
    ASSERT_EQ(time.at(kHour + passed), start + passed);
  }
}

// A thread that read its clock before the others looked comes late, and says nothing of a pause.
TEST(RunningTimeTest, AnOldReadingChangesNothing) {
  RunningTime time;
  const std::int64_t start = time.at(kHour);
  EXPECT_EQ(time.at(kHour + kStep), start + kStep);
  EXPECT_EQ(time.at(kHour), start);
  EXPECT_EQ(time.at(kHour + kStep), start + kStep);
}

// All threads of a process wake at once.
TEST(RunningTimeTest, OfSeveralThreadsOneCountsThePause) {
  constexpr int kThreads = 4, kPauses = 500;
  RunningTime time;
  const std::int64_t start = time.at(kHour);
  std::barrier together(kThreads);
  test::on_all_ranks(kThreads, [&](int) {
    for (std::int64_t pause = 1; pause <= kPauses; ++pause) {
      together.arrive_and_wait();
      EXPECT_EQ(time.at(kHour + pause * kHour), start + pause * kStep);
    }
  });
}

TEST(DeadlineTest, PassesWhileTheProcessRuns) {
  const auto began = std::chrono::steady_clock::now();
  const Deadline deadline(30ms);
  EXPECT_FALSE(deadline.passed());
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  EXPECT_FALSE(deadline.wait(never, lock, [] { return false; }));
  EXPECT_TRUE(deadline.passed());
  EXPECT_GE(std::chrono::steady_clock::now() - began, 30ms);
  EXPECT_EQ(deadline.left(), 0ns);
  EXPECT_EQ(deadline.poll_ms(), 0);
}

TEST(DeadlineTest, WhoWaitsLooksAgainLongBeforeItCountsAsPaused) {
  const Deadline far(1h);
  EXPECT_EQ(far.poll_ms(), 100);
  EXPECT_EQ(far.poll_ms(7ms), 7);
  const auto look = far.next_look(), early = far.next_look(7ms);
  const auto now = std::chrono::steady_clock::now();
  EXPECT_LE(look - now, 100ms);
  EXPECT_LE(early - now, 7ms);
  EXPECT_LT(2 * std::chrono::nanoseconds(Deadline::kBetweenLooks).count(), kStep);
}

TEST(DeadlineTest, AConditionThatHoldsEndsTheWait) {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  EXPECT_TRUE(Deadline(0ms).wait(changed, lock, [] { return true; }));
  int looks = 0;
  EXPECT_TRUE(Deadline(1h).wait(changed, lock, [&] { return ++looks == 3; })) << "nobody tells it";
}

}  // namespace
}  // namespace tutti
