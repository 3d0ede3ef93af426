// What the pages of two ranks say of each other's operations.
#include "group/recorder/comparison.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "unit/group/recorder/pages.hpp"

namespace tutti::test {
namespace {

// Two recorders, as ranks 0 and 1.
class PageComparisonTest : public ::testing::Test {
 protected:
  struct Rank {
    std::unique_ptr<FlightRecorder> recorder;
    std::uint64_t sequence = 0;

    void run(std::uint32_t signature, bool numbered = true) {
      OperationNote note = note_of(++sequence);
      note.signature = signature;
      note.numbered = numbered;
      recorder->begin(note);
      recorder->end(sequence, true);
    }
    const std::byte* page() const { return recorder->page()->address(); }
  };

  void run_both(std::uint32_t signature, int times = 1) {
    for (int k = 0; k < times; ++k) {
      for (Rank* rank : {&one_, &other_}) rank->run(signature);
    }
  }

  Rank one_{open_recorder(0)}, other_{open_recorder(1)};
  PageComparison comparison_{one_.page(), other_.page()};
};

TEST_F(PageComparisonTest, EqualOperationsAreNotDifferent) {
  EXPECT_FALSE(comparison_.look());
  run_both(5);
  EXPECT_FALSE(comparison_.look());
  one_.run(6);
  EXPECT_FALSE(comparison_.look()) << "the other rank has not come so far";
  other_.run(6);
  EXPECT_FALSE(comparison_.look());
}

TEST_F(PageComparisonTest, AnotherOperationIsFoundAtEveryLook) {
  run_both(5, 2);
  EXPECT_FALSE(comparison_.look());
  one_.run(6);
  other_.run(7);
  for (int look = 0; look < 2; ++look) {
    const auto found = comparison_.look();
    ASSERT_TRUE(found && found->other);
    EXPECT_EQ(found->own.sequence, 3u);
    EXPECT_EQ(found->own.signature, 6u);
    EXPECT_EQ(found->other->signature, 7u);
    EXPECT_EQ(found->other->row, "all_reduce/one_shot");
  }
}

// The first one that differs is named, whatever has followed.
TEST_F(PageComparisonTest, AnEarlierDifferenceIsFound) {
  run_both(1, 10);
  one_.run(6), one_.run(7), other_.run(7), other_.run(6);
  run_both(2, 600);
  const auto found = comparison_.look();
  ASSERT_TRUE(found && found->other);
  EXPECT_EQ(found->own.sequence, 11u);
  EXPECT_EQ(found->own.signature, 6u);
  EXPECT_EQ(found->other->signature, 7u);
}

TEST_F(PageComparisonTest, ADifferenceThatWasOverwrittenIsFound) {
  one_.run(6), other_.run(7);
  run_both(2, kPageRecords + 100);
  const auto found = comparison_.look();
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->other);
  EXPECT_GT(found->own.sequence, 100u);
}

// Messages, captured operations and those of other executors: ranks have them in other places.
TEST_F(PageComparisonTest, OperationsWithoutANumberAreNotCompared) {
  for (int round = 0; round < 700; ++round) {
    for (int k = 0; k < round % 3; ++k) one_.run(100 + static_cast<std::uint32_t>(k), false);
    one_.run(8);
    if (round % 2 == 0) other_.run(200, false);
    other_.run(8);
    if (round % 5 != 0) continue;
    ASSERT_FALSE(comparison_.look()) << round;
  }
  one_.run(300, false);
  one_.run(9);
  other_.run(8);
  ASSERT_TRUE(comparison_.look());
}

// One that was overwritten on the rank that is ahead is not compared.
TEST_F(PageComparisonTest, ARankMayBeFarAhead) {
  for (std::uint32_t k = 0; k < 3 * kPageRecords; ++k) one_.run(k);
  for (std::uint32_t k = 0; k < 3 * kPageRecords; ++k) {
    other_.run(k);
    if (k % 100 != 0) continue;
    ASSERT_FALSE(comparison_.look()) << k;
  }
  one_.run(1);
  other_.run(2);
  EXPECT_TRUE(comparison_.look());
}

// On GPUs, once an operation is enqueued.
TEST_F(PageComparisonTest, ANumberMayComeLater) {
  one_.run(6, false);
  other_.run(7);
  EXPECT_FALSE(comparison_.look());
  one_.recorder->number(1, 6);
  EXPECT_TRUE(comparison_.look());
}

TEST_F(PageComparisonTest, WritersMayGoOn) {
  std::atomic<bool> done = false;
  const auto write = [&](Rank& rank) {
    for (std::uint32_t k = 0; k < 30'000; ++k) rank.run(k / 3, k % 7 != 0);
  };
  std::thread first([&] { write(one_); }), second([&] { write(other_); });
  std::thread watcher([&] {
    while (!done) EXPECT_FALSE(comparison_.look());
  });
  first.join();
  second.join();
  done = true;
  watcher.join();
  one_.run(1);
  other_.run(2);
  EXPECT_TRUE(comparison_.look());
}

}  // namespace
}  // namespace tutti::test
