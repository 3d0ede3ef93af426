#include "bench/host_use.hpp"

#include <gtest/gtest.h>

namespace tutti::cli {
namespace {

constexpr const char* kInterfaces =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n"
    "    lo:  999       9    0    0    0     0          0         0  999       9\n"
    "    e0: 1000      10    0    0    0     0          0         0  300       3\n"
    "  eth1:2000      10    0    0    0     0          0         0   40       3\n";
constexpr const char* kCores = "cpu  10 20 30 400 100 5 6 7 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";

TEST(HostUse, CountsWhatAllInterfacesButLoopbackSent) {
  EXPECT_EQ(host_use_from(kInterfaces, "").sent_bytes, 340U);
}

TEST(HostUse, WaitingForADiskIsIdle) {
  const HostUse use = host_use_from("", kCores);
  EXPECT_EQ(use.all_ticks, 578U);
  EXPECT_EQ(use.busy_ticks, 78U);
}

TEST(HostUse, NothingThatCanBeReadCountsNothing) { EXPECT_EQ(host_use_from("", ""), HostUse()); }

TEST(HostUse, AShareIsOfEnoughTicks) {
  EXPECT_EQ((HostUse{.busy_ticks = 19, .all_ticks = 19}.cpu_share()), 0);
  EXPECT_EQ((HostUse{.busy_ticks = 5, .all_ticks = 20}.cpu_share()), 0.25);
}

TEST(HostUse, DifferencesAddUp) {
  const HostUse early{.sent_bytes = 10, .busy_ticks = 20, .all_ticks = 30};
  const HostUse late{.sent_bytes = 11, .busy_ticks = 22, .all_ticks = 33};
  HostUse sum = late - early;
  sum += late - early;
  EXPECT_EQ(sum, (HostUse{.sent_bytes = 2, .busy_ticks = 4, .all_ticks = 6}));
}

// The clock of the cores goes on.
TEST(HostUse, IsReadFromThisMachine) { EXPECT_GT(host_use_now().all_ticks, 0U); }

}  // namespace
}  // namespace tutti::cli
