// How far a stream has come, as the watchdog asks.
#include <gtest/gtest.h>

#include "fakes/fake_cuda.hpp"
#include "group/engine.hpp"
#include "support/check.hpp"

namespace tutti::test {
namespace {

TEST(ProgressTest, AnEngineHasCaughtUpWhenItsLastEventHasPassed) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(1));
  const auto engine = take(make_cuda_engine(cuda, 0, {.channels = 1, .timeout_ns = 1}));
  EXPECT_TRUE(engine->caught_up());  // nothing was started
  EXPECT_EQ(cuda.calls("event_finished"), 0);
  const Stream stream = take(cuda.create_stream(0));
  require_ok(engine->enter_stream(stream));
  require_ok(engine->leave_stream(stream));
  cuda.fail("event_finished", 0);
  EXPECT_FALSE(engine->caught_up());  // whoever gets no answer knows nothing
  EXPECT_TRUE(engine->caught_up());
  EXPECT_EQ(cuda.calls("event_finished"), 2);
  require_ok(cuda.destroy_stream(stream));
}

TEST(ProgressTest, TheHostHasCaughtUpWhenACallReturns) {
  EXPECT_TRUE(make_host_engine({.channels = 1, .timeout_ns = 1})->caught_up());
}

}  // namespace
}  // namespace tutti::test
