// The lane of all-gathers that a kernel waits for, on fakes: what is behind what, which numbers
// words get, and who ends the kernel's waits.
#include "executors/copy_engine/arrival_lane.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "fakes/fake_cuda.hpp"
#include "support/check.hpp"
#include "support/fake_gpus.hpp"
#include "tutti/collectives.hpp"

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

  ArrivalLane::Turn begin(Stream in) { return take(lane->begin(lane->lock(), in, 2)); }
  void end(ArrivalLane::Turn turn, Stream in) { require_ok(lane->end(std::move(turn), in)); }
  // As the group does once the all-gather is enqueued.
  void wait_for_side(Stream side, Stream in) {
    const CudaEvent gathered = take(cuda.create_event(false));
    require_ok(cuda.record_event(gathered, side));
    require_ok(cuda.wait_event(in, gathered));
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

TEST_F(ArrivalLaneTest, TheSideStreamIsBehindTheCallersAndTheTurnsEndBehindBoth) {
  const auto before = occupy(stream);
  ArrivalLane::Turn turn = begin(stream);
  EXPECT_FALSE(idle(turn.side));
  *before = true;
  EXPECT_TRUE(idle(turn.side));
  const auto gathers = occupy(turn.side);
  wait_for_side(turn.side, stream);
  end(std::move(turn), stream);
  EXPECT_FALSE(idle(stream));
  EXPECT_FALSE(lane->drain(Deadline(milliseconds(1))));
  *gathers = true;
  EXPECT_TRUE(lane->drain(Deadline(milliseconds(1))));
  EXPECT_TRUE(idle(stream));
}

// A kernel of the next turn may not begin while one of this turn waits.
TEST_F(ArrivalLaneTest, TurnsFollowEachOtherWhateverTheirStream) {
  const Stream other = take(cuda.create_stream(0));
  ArrivalLane::Turn first = begin(stream);
  EXPECT_EQ(first.number, 1u);
  const auto kernel = occupy(stream);
  end(std::move(first), stream);
  ArrivalLane::Turn second = begin(other);
  EXPECT_EQ(second.number, 2u);
  EXPECT_FALSE(idle(other) || idle(second.side));
  *kernel = true;
  EXPECT_TRUE(idle(other) && idle(second.side));
  end(std::move(second), other);
}

// The handle of a stream that is gone may be another one's.
TEST_F(ArrivalLaneTest, ATurnIsBehindTheLastOneAlsoWhereItsStreamHasThatHandle) {
  const Stream gone = take(cuda.create_stream(0));
  ArrivalLane::Turn first = begin(gone);
  const auto kernel = occupy(gone);
  end(std::move(first), gone);
  require_ok(cuda.destroy_stream(gone));
  const Stream again = take(cuda.create_stream(0));
  ASSERT_EQ(again, gone);
  ArrivalLane::Turn second = begin(again);
  EXPECT_FALSE(idle(again) || idle(second.side));
  *kernel = true;
  EXPECT_TRUE(idle(again) && idle(second.side));
  end(std::move(second), again);
}

// Whichever of its driver calls fails.
TEST_F(ArrivalLaneTest, ATurnIsBehindTheLastOneAlsoAfterABeginThatFailed) {
  for (const auto& [method, k] :
       {std::pair("wait_event", 0), {"record_event", 0}, {"wait_event", 1}}) {
    ArrivalLane::Turn first = begin(stream);
    const auto kernel = occupy(stream);
    end(std::move(first), stream);
    const Stream other = take(cuda.create_stream(0)), third = take(cuda.create_stream(0));
    cuda.fail(method, k);
    EXPECT_FALSE(lane->begin(lane->lock(), other, 2).is_ok());
    EXPECT_TRUE(cuda.has_failed());
    ArrivalLane::Turn next = begin(third);
    EXPECT_FALSE(idle(third) || idle(next.side)) << method << " " << k;
    *kernel = true;
    EXPECT_TRUE(idle(third) && idle(next.side));
    end(std::move(next), third);
    EXPECT_TRUE(lane->drain(Deadline(milliseconds(1))));
  }
}

// Else words that the next turn has set already would be reset.
TEST_F(ArrivalLaneTest, ATurnIsBehindTheResetOfABeginThatFailed) {
  constexpr std::uint32_t kLast = std::numeric_limits<std::int32_t>::max();
  lane = take(ArrivalLane::create(cuda, 0, kLast));
  std::uint64_t earlier_work = 0;
  wait_for(earlier_work);
  cuda.fail("record_event", 0);
  EXPECT_FALSE(lane->begin(lane->lock(), stream, 2).is_ok());
  const Stream other = take(cuda.create_stream(0));
  ArrivalLane::Turn next = begin(other);
  EXPECT_EQ(next.number, 1u);
  EXPECT_FALSE(idle(other));
  std::atomic_ref(earlier_work).store(1);
  EXPECT_TRUE(idle(other));
  end(std::move(next), other);
}

// Before the numbers reach half of their range, from where on an old word would be ahead.
TEST_F(ArrivalLaneTest, WordsBeginAnewBeforeTheyCouldBeAhead) {
  constexpr std::uint32_t kLast = std::numeric_limits<std::int32_t>::max();
  lane = take(ArrivalLane::create(cuda, 0, kLast - 1));
  ArrivalLane::Turn last = begin(stream);
  EXPECT_EQ(last.number, kLast);
  std::uint32_t& word = last.words[ArrivalLane::kWords - 1];
  word = kLast;
  std::uint64_t kernel_ended = 0;
  wait_for(kernel_ended);
  end(std::move(last), stream);
  ArrivalLane::Turn first = begin(stream);
  EXPECT_EQ(first.number, 1u);
  EXPECT_EQ(word, kLast) << "it may still be read";
  std::atomic_ref(kernel_ended).store(1);
  EXPECT_TRUE(idle(stream));
  EXPECT_EQ(word, 0u);
  end(std::move(first), stream);
}

// Nobody knows what a turn has enqueued that was not ended.
TEST_F(ArrivalLaneTest, ATurnThatCouldNotBeEndedKeepsItsMemory) {
  end(begin(stream), stream);
  EXPECT_TRUE(lane->drain(Deadline(milliseconds(1))));
  cuda.fail("record_event", 1);  // the end's
  EXPECT_FALSE(lane->end(begin(stream), stream).is_ok());
  EXPECT_FALSE(lane->drain(Deadline(milliseconds(1))));
  // Nor could anything be ordered behind it.
  EXPECT_EQ(lane->begin(lane->lock(), stream, 2).status().code(), StatusCode::kCuda);
}

TEST_F(ArrivalLaneTest, AFailedWaitNamesItsShardAndChunk) {
  ArrivalLane::Turn turn = begin(stream);  // 2 chunks a shard
  EXPECT_FALSE(lane->late_chunk());
  *turn.failure = {.failed = 0, .chunk = 5, .epoch = 7, .seen = 6};
  std::atomic_ref(turn.failure->failed).store(1);
  const auto late = lane->late_chunk();
  ASSERT_TRUE(late);
  EXPECT_EQ(late->shard, 2);
  EXPECT_EQ(late->chunk, 1);
  EXPECT_EQ(late->number, 7u);
  EXPECT_EQ(late->seen, 6u);
  EXPECT_EQ(*turn.abort, 0u);
  lane->release();
  EXPECT_EQ(*turn.abort, 1u);
  end(std::move(turn), stream);
}

// As long as their graphs live. The words are zero before the matmul, in the graph.
TEST_F(ArrivalLaneTest, CapturedTurnsHaveWordsOfTheirOwn) {
  ArrivalLane::Turn eager = begin(stream);
  const std::uint32_t* const words = eager.words;
  end(std::move(eager), stream);
  const auto capture = [&](int turns) {
    require_ok(cuda.begin_capture(stream));
    std::vector<std::uint32_t> numbers;
    for (int k = 0; k < turns; ++k) {
      ArrivalLane::Turn turn = begin(stream);
      EXPECT_EQ(turn.words, words + std::size_t{turn.number} * ArrivalLane::kWords);
      EXPECT_NE(turn.met, nullptr);
      numbers.push_back(turn.number);
      *turn.words = 9;
      end(std::move(turn), stream);
    }
    return std::pair(take(cuda.end_capture(stream)), numbers);
  };
  const auto [first, of_first] = capture(2);
  const auto [second, of_second] = capture(1);
  EXPECT_EQ(of_first, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(of_second, (std::vector<std::uint32_t>{3}));
  const CudaGraphExec exec = take(cuda.instantiate(first));
  require_ok(cuda.launch_graph(exec, stream));
  EXPECT_EQ(words[std::size_t{2} * ArrivalLane::kWords], 0u);
  EXPECT_EQ(words[std::size_t{3} * ArrivalLane::kWords], 9u);
  require_ok(cuda.destroy_graph(first));
  EXPECT_EQ(capture(1).second.front(), 4u) << "it may still be replayed";
  require_ok(cuda.destroy_graph_exec(exec));
  EXPECT_LE(capture(1).second.front(), 2u);
  EXPECT_TRUE(lane->drain(Deadline(milliseconds(1))));
}

TEST_F(ArrivalLaneTest, GraphsHaveSoManyTurns) {
  require_ok(cuda.begin_capture(stream));
  for (int k = 0; k < ArrivalLane::kCapturedTurns; ++k) end(begin(stream), stream);
  const Status status = lane->begin(lane->lock(), stream, 1).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "1024 captured calls are in graphs: destroy some");
  require_ok(cuda.destroy_graph(take(cuda.end_capture(stream))));
  end(begin(stream), stream);
}

TEST_F(ArrivalLaneTest, ADriverThatCapturesNoWritesRefusesCaptures) {
  cuda.fail("memory_operations", 0);
  lane = take(ArrivalLane::create(cuda, 0));
  require_ok(cuda.begin_capture(stream));
  const Status status = lane->begin(lane->lock(), stream, 1).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(),
              testing::StartsWith("the driver captures no stream memory operations: "));
  require_ok(cuda.destroy_graph(take(cuda.end_capture(stream))));
  end(begin(stream), stream);
}

TEST_F(ArrivalLaneTest, AFailedWaitOfAReplayNamesItsShardAndChunk) {
  require_ok(cuda.begin_capture(stream));
  end(begin(stream), stream);  // 2 chunks a shard
  ArrivalLane::Turn turn = take(lane->begin(lane->lock(), stream, 3));
  *turn.failure = {.failed = 0, .chunk = 5, .epoch = turn.number, .seen = 0};
  std::atomic_ref(turn.failure->failed).store(1);
  const auto late = lane->late_chunk();
  ASSERT_TRUE(late);
  EXPECT_EQ(late->shard, 1);
  EXPECT_EQ(late->chunk, 2);
  end(std::move(turn), stream);
  require_ok(cuda.destroy_graph(take(cuda.end_capture(stream))));
}

class ArrivalLanesOfGroups : public testing::Test {
 protected:
  // Until the kernel's waits are told to end.
  static void expect_release(const std::uint32_t* abort) {
    const std::atomic_ref word(*const_cast<std::uint32_t*>(abort));
    for (int k = 0; k < 10000 && word.load() == 0; ++k) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_EQ(word.load(), 1u);
  }

  FakeGpus gpus{2};
  Communicator& group = gpus.groups[0];
  Stream stream = gpus.make_stream(0);
  ArrivalLane::Turn turn = take(group.impl().begin_arrivals(stream, 2));
};

TEST_F(ArrivalLanesOfGroups, AFailureEndsTheKernelsWaits) {
  gpus.groups[1].abort("enough");
  expect_release(turn.abort);
  EXPECT_EQ(group.status().code(), StatusCode::kAborted);
  require_ok(group.impl().end_arrivals(std::move(turn), stream));
}

TEST_F(ArrivalLanesOfGroups, AFailedWaitOfTheKernelIsAFailure) {
  *turn.failure = {.failed = 0, .chunk = 3, .epoch = 7, .seen = 6};
  std::atomic_ref(turn.failure->failed).store(1);
  for (int k = 0; k < 2; ++k) {  // whoever sees it first
    EXPECT_EQ(group.status().code(), StatusCode::kTimeout);
  }
  EXPECT_EQ(group.status().message(),
            "a matmul on rank 0 waited too long for chunk 1 of the A of rank 1 (epoch 7, seen 6)");
  expect_release(turn.abort);
  require_ok(group.impl().end_arrivals(std::move(turn), stream));
}

// The word behind the flags lets a kernel begin that brings A itself.
TEST_F(ArrivalLanesOfGroups, AKernelThatDoesNotBeginWaitsForTheRanksToMeet) {
  *turn.failure = {.failed = 0, .chunk = 2 * 2, .epoch = 7, .seen = 6};  // 2 flags a shard
  std::atomic_ref(turn.failure->failed).store(1);
  EXPECT_EQ(group.status().code(), StatusCode::kTimeout);
  EXPECT_EQ(group.status().message(),
            "a matmul on rank 0 waited too long for the ranks to meet (epoch 7, seen 6)");
  expect_release(turn.abort);
  require_ok(group.impl().end_arrivals(std::move(turn), stream));
}

// The next operations of other streams need not wait for the matmul.
TEST_F(ArrivalLanesOfGroups, TheCallersStreamWaitsForTheGatherAndOthersNotForTheCallers) {
  const auto gathers = gpus.occupy(turn.side);
  require_ok(barrier(group, {.stream = turn.side}));
  const auto matmul = gpus.occupy(stream);
  require_ok(group.impl().end_arrivals(std::move(turn), stream));
  *matmul = true;
  EXPECT_FALSE(gpus.idle(stream));
  *gathers = true;
  EXPECT_TRUE(gpus.idle(stream));
  const auto later = gpus.occupy(stream);
  const Stream other = gpus.make_stream(0);
  require_ok(barrier(group, {.stream = other}));
  EXPECT_TRUE(gpus.idle(other));
  *later = true;
}

}  // namespace
}  // namespace tutti::test
