// How long a wait polls before it yields.
#include "tutti/device/impl/host_wait.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

namespace tutti::device::impl {
namespace {

constexpr std::int64_t kAtOnceNs = 400, kSwitchNs = 2'000;
constexpr int kSeveral = 16;

OwnCore after_yields_at_once(int yields) {
  OwnCore core;
  for (int k = 0; k < yields; ++k) core.note_first_yield(kAtOnceNs);
  return core;
}

TEST(OwnCoreTest, SeemsOwnAfterSeveralYieldsAtOnce) {
  EXPECT_FALSE(OwnCore().seems_own());
  EXPECT_FALSE(after_yields_at_once(kSeveral - 1).seems_own());
  EXPECT_TRUE(after_yields_at_once(kSeveral).seems_own());
}

TEST(OwnCoreTest, OneLongYieldEndsThat) {
  OwnCore core = after_yields_at_once(100 * kSeveral);
  core.note_first_yield(kSwitchNs);
  EXPECT_FALSE(core.seems_own());
  for (int k = 1; k < kSeveral; ++k) core.note_first_yield(kAtOnceNs);
  EXPECT_FALSE(core.seems_own());
  core.note_first_yield(kAtOnceNs);
  EXPECT_TRUE(core.seems_own());
}

// pause() returns true after the first yield.
int pauses_before_a_yield(const OwnCore& core) {
  int pauses = 1;
  std::thread([&] {  // with its own `own_core`
    own_core = core;
    for (HostWait wait; !wait.pause();) ++pauses;
  })
      .join();
  return pauses;
}

TEST(HostWaitTest, PollsLongerOnACoreOfItsOwn) {
  EXPECT_EQ(pauses_before_a_yield(OwnCore()), 257);
  EXPECT_EQ(pauses_before_a_yield(after_yields_at_once(kSeveral)), 4097);
}

// Whatever else runs here: one more at once makes the core its own, or any other begins anew.
TEST(HostWaitTest, AFirstYieldIsNoted) {
  std::thread([] {
    own_core = after_yields_at_once(kSeveral - 1);
    for (HostWait wait; !wait.pause();) {
    }
    if (own_core.seems_own()) return;
    own_core.note_first_yield(kAtOnceNs);
    EXPECT_FALSE(own_core.seems_own());
  }).join();
}

}  // namespace
}  // namespace tutti::device::impl
