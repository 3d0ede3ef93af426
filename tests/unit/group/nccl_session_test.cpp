#include <gtest/gtest.h>

#include <thread>

#include "executors/nccl/session.hpp"
#include "fakes/fake_cuda.hpp"
#include "fakes/fake_nccl.hpp"
#include "support/check.hpp"
#include "support/patience.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using How = NcclSession::How;

Deadline soon() { return Deadline(kPatience); }

class NcclSessionTest : public ::testing::Test {
 protected:
  void open() { require_ok(session_.open({*nccl_.unique_id(), 0, 1}, soon(), nullptr)); }

  FakeCuda cuda_{std::make_shared<FakeCudaWorld>(1)};
  FakeNccl nccl_;
  NcclSession session_{&nccl_, &cuda_};
};

TEST_F(NcclSessionTest, NothingIsOpenAtFirst) {
  EXPECT_FALSE(session_.is_open());
  EXPECT_FALSE(session_.enter());
  EXPECT_TRUE(session_.async_error().is_ok());
  session_.end(How::kAbort);
  EXPECT_TRUE(nccl_.calls().empty());
}

TEST_F(NcclSessionTest, TheEndWaitsForCalls) {
  open();
  NcclSession::Call call = session_.enter();
  ASSERT_TRUE(call);
  session_.end(How::kDestroy);
  EXPECT_FALSE(session_.enter());
  EXPECT_FALSE(session_.wait_ended(Deadline(milliseconds(50))));
  EXPECT_EQ(nccl_.open_communicators(), 1);
  call.leave();
  EXPECT_TRUE(session_.wait_ended(soon()));
  EXPECT_EQ(nccl_.open_communicators(), 0);
}

TEST_F(NcclSessionTest, AnAbortInterruptsCallsThatStay) {
  open();
  NcclSession::Call call = session_.enter();
  session_.end(How::kAbort);
  session_.end(How::kDestroy);  // too late
  const auto was_called = [this](const char* name) {
    for (const auto& each : nccl_.calls()) {
      if (each.name == name) return true;
    }
    return false;
  };
  for (const Deadline end = soon(); !end.passed() && !was_called("interrupt");) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(was_called("interrupt"));
  EXPECT_FALSE(session_.wait_ended(Deadline(milliseconds(50))));
  call.leave();
  EXPECT_TRUE(session_.wait_ended(soon()));
  EXPECT_TRUE(was_called("abort"));
  EXPECT_FALSE(was_called("destroy"));
}

// Nothing but an abort can end the call then.
TEST_F(NcclSessionTest, AnOldNcclIsAbortedWithACallUnderWay) {
  open();
  nccl_.can_interrupt = false;
  const NcclSession::Call call = session_.enter();
  session_.end(How::kAbort);
  EXPECT_TRUE(session_.wait_ended(soon()));
}

TEST_F(NcclSessionTest, AnEndThatTakesTooLongIsLeftBehind) {
  open();
  nccl_.hold_endings = true;
  session_.end(How::kAbort);
  EXPECT_FALSE(session_.wait_ended(Deadline(milliseconds(50))));
  nccl_.hold_endings = false;
  EXPECT_TRUE(session_.wait_ended(soon()));
}

}  // namespace
}  // namespace tutti::test
