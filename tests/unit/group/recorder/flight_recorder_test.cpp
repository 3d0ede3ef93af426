// What a recorder writes is what a reader sees, whole, whenever it looks.
#include "group/recorder/flight_recorder.hpp"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "support/sanitizers.hpp"
#include "unit/group/recorder/pages.hpp"

namespace tutti::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FlightRecorder, ShowsWhoWrites) {
  const auto recorder = open_recorder();
  const Snapshot page = look_at(*recorder);
  EXPECT_EQ(page.group, kGroup);
  EXPECT_EQ(page.rank, 1);
  EXPECT_EQ(page.ranks, 3);
  EXPECT_EQ(page.process_id, ::getpid());
  EXPECT_EQ(page.backend, Backend::kHost);
  EXPECT_FALSE(page.host.empty());
  EXPECT_THAT(page.operations, IsEmpty());
  EXPECT_EQ(page.current(), nullptr);
  EXPECT_FALSE(page.failure || page.closed);
}

TEST(FlightRecorder, ShowsAnOperationWhileItRunsAndAfter) {
  const auto recorder = open_recorder();
  run_operation(*recorder, 1);
  recorder->begin(note_of(2));
  const Snapshot during = look_at(*recorder);
  ASSERT_EQ(during.operations.size(), 2u);
  EXPECT_EQ(to_string(*during.current()), "all_reduce/one_shot #2 (20 x bf16, max)");
  EXPECT_EQ(during.current()->state, OperationState::kRunning);
  EXPECT_EQ(during.current()->bytes, 40u);
  EXPECT_EQ(during.current()->ended_ns, 0u);
  EXPECT_EQ(during.operations[0].state, OperationState::kDone);
  EXPECT_LE(during.operations[0].ended_ns, during.current()->started_ns);

  recorder->end(2, false);
  EXPECT_EQ(look_at(*recorder).current()->state, OperationState::kFailed);
}

TEST(FlightRecorder, KeepsTheLast1024Operations) {
  const auto recorder = open_recorder();
  for (std::uint64_t sequence = 1; sequence <= 2500; ++sequence) run_operation(*recorder, sequence);
  const Snapshot page = look_at(*recorder);
  ASSERT_EQ(page.operations.size(), 1024u);
  EXPECT_EQ(page.unreadable, 0);
  for (std::size_t k = 0; k < page.operations.size(); ++k) {
    EXPECT_EQ(page.operations[k].sequence, 2500 - 1024 + 1 + k);
    EXPECT_EQ(page.operations[k].count, 10 * page.operations[k].sequence);
  }
}

TEST(FlightRecorder, ALateEndDoesNotTouchAnotherOperation) {
  const auto recorder = open_recorder();
  recorder->begin(note_of(7));
  recorder->begin(note_of(7 + kPageRecords));
  recorder->end(7, false);
  const Snapshot page = look_at(*recorder);
  ASSERT_EQ(page.operations.size(), 1u);
  EXPECT_EQ(page.current()->sequence, 7u + kPageRecords);
  EXPECT_EQ(page.current()->state, OperationState::kRunning);
}

TEST(FlightRecorder, AnEnqueuedOperationIsDoneOnceTheStreamHasComeSoFar) {
  const auto recorder = open_recorder();
  for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) {
    OperationNote note = note_of(sequence);
    note.state = OperationState::kEnqueued;
    recorder->begin(note);
  }
  EXPECT_EQ(look_at(*recorder).current()->sequence, 1u);
  recorder->done_through(2);
  recorder->done_through(1);  // late news
  const Snapshot page = look_at(*recorder);
  EXPECT_EQ(page.current()->sequence, 3u);
  EXPECT_EQ(page.operations[1].state, OperationState::kDone);
}

TEST(FlightRecorder, TellsWhomItWaitsForAndWhatFailed) {
  const auto recorder = open_recorder();
  std::atomic_ref(*recorder->waits_for()).store(0b101);
  EXPECT_THAT(look_at(*recorder).waits_for, ElementsAre(0, 2));
  recorder->waited_for(1);  // the wait itself has told more
  EXPECT_THAT(look_at(*recorder).waits_for, ElementsAre(0, 2));
  std::atomic_ref(*recorder->waits_for()).store(0);
  recorder->waited_for(2);
  EXPECT_THAT(look_at(*recorder).waits_for, ElementsAre(2));
  recorder->fail({StatusCode::kTimeout, "waited\x1b[31m"});
  const Snapshot page = look_at(*recorder);
  ASSERT_TRUE(page.failure);
  EXPECT_EQ(page.failure->code, StatusCode::kTimeout);
  EXPECT_EQ(page.failure->text, "waited?[31m");  // nothing a terminal would obey
}

TEST(FlightRecorder, WithoutAPageDoesNothing) {
  FlightRecorder recorder;
  run_operation(recorder, 1);
  recorder.done_through(1);
  recorder.waited_for(0);
  recorder.fail({StatusCode::kAborted, "x"});
  EXPECT_EQ(recorder.waits_for(), nullptr);
  EXPECT_EQ(recorder.descriptor(), -1);
}

TEST(FlightRecorder, LeavesAFileOnlyAfterAFailure) {
  const TraceFolder folder;
  open_recorder(0, folder.path());
  EXPECT_EQ(folder.files(), 0u);
  auto recorder = open_recorder(0, folder.path());
  recorder->fail({StatusCode::kAborted, "x"});
  recorder.reset();
  EXPECT_EQ(folder.files(), 1u);
  const auto found = take(pages_in_folder(folder.path(), kHost));
  ASSERT_EQ(found.pages.size(), 1u);
  EXPECT_TRUE(found.pages[0].page.closed);
  EXPECT_EQ(found.pages[0].page.failure->text, "x");
}

TEST(FlightRecorder, MakesItsFolderAndRefusesWhatIsNone) {
  const TraceFolder folder;
  const auto recorder = open_recorder(0, folder.path() + "/new");
  EXPECT_EQ(std::filesystem::status(folder.path() + "/new").permissions(),
            std::filesystem::perms::owner_all);
  const RecordedRank rank{.group = kGroup};
  EXPECT_EQ(FlightRecorder::open(rank, "/dev/null").status().code(), StatusCode::kSystem);
  // The name is taken: nobody's file is overwritten.
  EXPECT_EQ(
      FlightRecorder::open({.group = kGroup, .rank = 0}, folder.path() + "/new").status().code(),
      StatusCode::kSystem);
}

// A reader that looks all the time, from another descriptor's point of view, sees whole records:
// every field of one is a function of its sequence number.
TEST(FlightRecorder, AReaderNeverSeesHalfARecord) {
  const auto recorder = open_recorder();
  std::atomic<bool> stop = false;
  std::jthread writer([&] {
    for (std::uint64_t sequence = 1; !stop; ++sequence) {
      std::atomic_ref(*recorder->waits_for()).store(sequence % 8, std::memory_order_relaxed);
      run_operation(*recorder, sequence);
      if (sequence % 64 == 0) std::this_thread::yield();
    }
  });
  std::jthread watchdog([&] {
    while (!stop) {
      recorder->done_through(1);
      recorder->waited_for(1);
    }
  });
  std::size_t seen = 0;
  for (int look = 0; look < (kThreadSanitizer ? 20 : 100); ++look) {
    const auto bytes = read_page(recorder->descriptor());
    if (!bytes.is_ok()) continue;  // the header did not hold still
    const Snapshot page = take(parse_page(*bytes));
    for (const RecordedOperation& operation : page.operations) {
      ASSERT_EQ(operation.count, 10 * operation.sequence);
      ASSERT_EQ(operation.signature, static_cast<std::uint32_t>(operation.sequence));
      ASSERT_EQ(operation.row, "all_reduce/one_shot");
      ++seen;
    }
  }
  stop = true;
  EXPECT_GT(seen, 0u);
}

// The cost on the hot path. The median of many short series: a busy machine makes some of them
// long, hardly most. The bound is far from what is measured, the figure is printed.
TEST(FlightRecorder, CostsLittlePerOperation) {
  const auto recorder = open_recorder();
  constexpr int kSeries = 201, kOperations = 1000;
  std::vector<double> ns;
  std::uint64_t sequence = 0;
  for (int series = 0; series < kSeries; ++series) {
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < kOperations; ++k) run_operation(*recorder, ++sequence);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    ns.push_back(took.count() / kOperations);
  }
  std::nth_element(ns.begin(), ns.begin() + kSeries / 2, ns.end());
  std::printf("begin and end: %.1f ns per operation (median), %.1f ns at best\n", ns[kSeries / 2],
              *std::min_element(ns.begin(), ns.end()));
  RecordProperty("ns_per_operation", std::to_string(ns[kSeries / 2]));
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(*std::min_element(ns.begin(), ns.end()), 1000.0) << "less than a system call takes";
#endif
}

}  // namespace
}  // namespace tutti::test
