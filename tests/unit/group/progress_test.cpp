// How far a stream has come, as the watchdog asks.
#include <gtest/gtest.h>

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
  require_ok(streams->enter(stream));
  require_ok(streams->leave(stream));
  cuda.fail("event_finished", 0);
  EXPECT_FALSE(streams->caught_up());  // whoever gets no answer knows nothing
  EXPECT_TRUE(streams->caught_up());
  EXPECT_EQ(cuda.calls("event_finished"), 2);
  require_ok(cuda.destroy_stream(stream));
}

TEST(ProgressTest, TheHostHasCaughtUpWhenACallReturns) {
  EXPECT_TRUE(make_host_streams()->caught_up());
}

}  // namespace
}  // namespace tutti::test
