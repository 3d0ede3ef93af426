// How far a stream has come, as the watchdog asks.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "executors/streams.hpp"
#include "fakes/fake_cuda.hpp"
#include "support/check.hpp"

namespace tutti::test {
namespace {

TEST(ProgressTest, StreamsHaveCaughtUpWhenTheLastEventHasPassed) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  const auto streams = take(make_cuda_streams(cuda, 0));
  EXPECT_TRUE(streams->caught_up());  // nothing was started
  EXPECT_EQ(cuda.calls("event_finished"), 0);
  const Stream stream = take(cuda.create_stream(0));
  require_ok(streams->enter(stream, {}));
  require_ok(streams->leave(stream, {}));
  cuda.fail("event_finished", 0);
  EXPECT_FALSE(streams->caught_up());  // whoever gets no answer knows nothing
  EXPECT_TRUE(streams->caught_up());
  EXPECT_EQ(cuda.calls("event_finished"), 2);
  require_ok(cuda.destroy_stream(stream));
}

// The handle says nothing of that: it may have been another stream's, which is gone.
TEST(ProgressTest, AStreamIsBehindTheLastOneAlsoWhereItHasItsHandle) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  const auto streams = take(make_cuda_streams(cuda, 0));
  const Stream last = take(cuda.create_stream(0));
  const auto busy = std::make_shared<std::atomic<bool>>(false);
  require_ok(streams->enter(last, {}));
  cuda.add_gate(last, busy);
  require_ok(streams->leave(last, {}));
  const int waits = cuda.calls("wait_event");
  require_ok(streams->enter(last, {}));
  EXPECT_EQ(cuda.calls("wait_event"), waits) << "it is behind itself";
  require_ok(cuda.destroy_stream(last));
  const Stream next = take(cuda.create_stream(0));
  ASSERT_EQ(next, last);
  EXPECT_TRUE(take(cuda.stream_finished(next)));
  require_ok(streams->enter(next, {}));
  EXPECT_FALSE(take(cuda.stream_finished(next)));
  *busy = true;
  EXPECT_TRUE(take(cuda.stream_finished(next)));
  require_ok(cuda.destroy_stream(next));
}

TEST(ProgressTest, TheHostHasCaughtUpWhenACallReturns) {
  EXPECT_TRUE(make_host_streams()->caught_up());
}

}  // namespace
}  // namespace tutti::test
