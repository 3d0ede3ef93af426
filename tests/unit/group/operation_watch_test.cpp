#include "executors/nccl/operation_watch.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "fakes/fake_cuda.hpp"
#include "support/check.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kOwn{0}, kUsual{1000};

class OperationWatchTest : public ::testing::Test {
 protected:
  using Gate = FakeCuda::Gate;

  // The k-th operation, which ends when the gate is true.
  Gate run(std::uint64_t k, Stream stream, milliseconds limit = kOwn, int lane = 0) {
    const Gate gate = std::make_shared<std::atomic<bool>>(false);
    const auto ticket = take(watch_->begin(lane, {.sequence = k}, limit, stream));
    tickets_.push_back(ticket);
    cuda_.add_gate(stream, gate);
    require_ok(watch_->end(ticket, stream));
    return gate;
  }
  // What is late when so much time has passed; 0: nothing.
  std::uint64_t late(milliseconds passed) {
    now_ += passed;
    const auto late = take(watch_->look(now_, kUsual));
    return late ? late->operation.sequence : 0;
  }
  std::uint64_t oldest() {
    const auto oldest = watch_->oldest();
    return oldest ? oldest->operation.sequence : 0;
  }

  std::vector<OperationWatch::Ticket> tickets_;
  FakeCuda cuda_{std::make_shared<FakeCudaWorld>(1)};
  std::unique_ptr<OperationWatch> watch_ = take(OperationWatch::create(cuda_, 0));
  Stream stream_ = take(cuda_.create_stream(0)), other_ = take(cuda_.create_stream(0));
  OperationWatch::Clock::time_point now_ = OperationWatch::Clock::now();
};

TEST_F(OperationWatchTest, AnOperationIsLateAfterItsDeadline) {
  const Gate first = run(1, stream_);
  EXPECT_EQ(late(milliseconds(0)), 0U);
  EXPECT_EQ(late(milliseconds(999)), 0U);
  EXPECT_EQ(late(milliseconds(1)), 1U);
  *first = true;
  EXPECT_EQ(late(milliseconds(0)), 0U);
  EXPECT_EQ(oldest(), 0U);
}

TEST_F(OperationWatchTest, EachOperationHasAClockOfItsOwn) {
  std::vector<Gate> gates;
  for (std::uint64_t k = 1; k <= 5; ++k) {
    gates.push_back(run(k, stream_, k == 4 ? milliseconds(50) : kOwn));
  }
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(late(milliseconds(0)), 0U);
    EXPECT_EQ(late(milliseconds(900)), 0U);
    *gates[k] = true;
  }
  EXPECT_EQ(late(milliseconds(900)), 0U);
  EXPECT_EQ(late(milliseconds(49)), 0U);
  EXPECT_EQ(late(milliseconds(1)), 4U);
}

TEST_F(OperationWatchTest, NothingIsLateBeforeItsStreamHasComeToIt) {
  const Gate work = std::make_shared<std::atomic<bool>>(false);
  cuda_.add_gate(stream_, work);
  const Gate first = run(1, stream_);
  EXPECT_EQ(late(milliseconds(5000)), 0U);
  EXPECT_FALSE(watch_->oldest()->begun);
  // On another stream, which has no work ahead: it still comes behind the first.
  const Gate second = run(2, other_);
  EXPECT_EQ(late(milliseconds(5000)), 0U);
  *work = true;
  EXPECT_EQ(late(milliseconds(5000)), 0U);
  EXPECT_TRUE(watch_->oldest()->begun);
  *first = true;
  EXPECT_EQ(late(milliseconds(5000)), 0U);
  EXPECT_EQ(late(milliseconds(1000)), 2U);
}

// Operations of two communicators may end in any order.
TEST_F(OperationWatchTest, AnotherLaneHidesNothing) {
  const Gate work = std::make_shared<std::atomic<bool>>(false);
  cuda_.add_gate(stream_, work);
  const Gate first = run(1, stream_, kOwn, 0);
  const Gate second = run(2, other_, kOwn, 1);
  *second = true;
  EXPECT_EQ(late(milliseconds(0)), 0U);
  EXPECT_EQ(oldest(), 1U);
  EXPECT_FALSE(watch_->has_ended(tickets_[0]));
  EXPECT_TRUE(watch_->has_ended(tickets_[1]));
  run(3, other_, kOwn, 1);
  EXPECT_EQ(late(milliseconds(0)), 0U);
  EXPECT_EQ(late(milliseconds(1000)), 3U);  // the first has not begun
  *work = true;
  EXPECT_EQ(late(milliseconds(0)), 3U);
  EXPECT_FALSE(watch_->has_ended(tickets_[0]));
  *first = true;
  EXPECT_EQ(oldest(), 3U);
}

// As those of graphs are, whatever else hangs.
TEST_F(OperationWatchTest, WhatIsNotWatchedHasEnded) {
  EXPECT_TRUE(watch_->has_ended(OperationWatch::kUnwatched));
  const Gate first = run(1, stream_, kOwn);
  EXPECT_FALSE(watch_->has_ended(tickets_[0]));
  EXPECT_TRUE(watch_->has_ended(OperationWatch::kUnwatched));
  *first = true;
}

// An operation that finds no pair is counted with its own lane's.
TEST_F(OperationWatchTest, LanesShareNoPairs) {
  const Gate other = run(1, other_, kOwn, 1);
  std::vector<Gate> gates;
  for (std::uint64_t k = 2; k <= 200; ++k) gates.push_back(run(k, stream_));
  const Gate last = run(201, other_, kOwn, 1);
  EXPECT_EQ(tickets_.back(), tickets_.front());
  for (const Gate& gate : gates) *gate = true;
  *other = true;
  EXPECT_EQ(oldest(), 1U);
  *last = true;
  EXPECT_EQ(oldest(), 0U);
}

// A call that does not return is under way, not finished: there is no event behind it yet.
TEST_F(OperationWatchTest, ACallThatBlocksIsTimed) {
  const auto first = take(watch_->begin(0, {.sequence = 1}, kOwn, stream_));
  const auto second = take(watch_->begin(0, {.sequence = 2}, kOwn, stream_));
  EXPECT_EQ(late(milliseconds(0)), 0U);
  require_ok(watch_->end(second, stream_));
  EXPECT_EQ(late(milliseconds(1000)), 1U);
  require_ok(watch_->end(first, stream_));
  EXPECT_EQ(late(milliseconds(0)), 0U);
  EXPECT_EQ(oldest(), 0U);
}

// Many more than there are events: none is made, none of them is lost sight of.
TEST_F(OperationWatchTest, AnyNumberMayBeUnderWay) {
  const std::size_t events = cuda_.open().events;
  std::vector<Gate> gates;
  for (std::uint64_t k = 1; k <= 1000; ++k) gates.push_back(run(k, stream_));
  EXPECT_EQ(cuda_.open().events, events);
  for (std::size_t k = 0; k < 999; ++k) *gates[k] = true;
  EXPECT_EQ(late(milliseconds(0)), 0U);
  EXPECT_EQ(oldest(), 128U);  // the last pair stands for the rest, and has the time of all of them
  EXPECT_EQ(late(milliseconds(872'999)), 0U);
  const auto found = take(watch_->look(now_ + milliseconds(1), kUsual));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->operations, 873);
  *gates.back() = true;
  EXPECT_EQ(late(milliseconds(1)), 0U);
  run(1001, stream_);
  EXPECT_EQ(late(milliseconds(0)), 0U);
  EXPECT_EQ(oldest(), 1001U);
}

// Finished ones make room as soon as it is needed, whether or not anybody looks.
TEST_F(OperationWatchTest, PairsAreUsedAgain) {
  for (std::uint64_t k = 1; k <= 1000; ++k) *run(k, stream_) = true;
  run(1001, stream_);  // has a pair to itself
  EXPECT_EQ(oldest(), 1001U);
}

TEST_F(OperationWatchTest, WhatTheDeviceSaysIsPassedOn) {
  run(1, stream_);
  cuda_.fail("event_finished", 0);
  EXPECT_EQ(watch_->look(now_, kUsual).status().code(), StatusCode::kCuda);
}

TEST_F(OperationWatchTest, LeavesNoEvents) {
  run(1, stream_);
  watch_.reset();
  EXPECT_EQ(cuda_.open().events, 0U);
  EXPECT_FALSE(OperationWatch::create(cuda_, 7).is_ok());
  cuda_.fail("create_event", 3);
  EXPECT_FALSE(OperationWatch::create(cuda_, 0).is_ok());
  EXPECT_EQ(cuda_.open().events, 0U);
}

}  // namespace
}  // namespace tutti::test
