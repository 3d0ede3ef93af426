#include "base/nearest.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tutti {
namespace {

constexpr std::string_view kCommands[] = {"bench", "tune", "explain", "status"};
constexpr std::string_view kOptions[] = {"ranks",      "rows",   "root",
                                         "iterations", "warmup", "timeout-ms"};

TEST(Nearest, FindsWhatWasMeant) {
  EXPECT_EQ(nearest("bnech", kCommands), "bench");  // swapped
  EXPECT_EQ(nearest("explian", kCommands), "explain");
  EXPECT_EQ(nearest("satus", kCommands), "status");  // left out
  EXPECT_EQ(nearest("benchh", kCommands), "bench");  // one too many
  EXPECT_EQ(nearest("STATUS", kCommands), "status");
  EXPECT_EQ(nearest("iters", kOptions), "iterations");
  EXPECT_EQ(nearest("timeout", kOptions), "timeout-ms");
  EXPECT_EQ(nearest("rank", kOptions), "ranks");
}

TEST(Nearest, FindsNothingWhereNothingIsNear) {
  EXPECT_EQ(nearest("sing", kCommands), "");
  EXPECT_EQ(nearest("loud", kOptions), "");
  EXPECT_EQ(nearest("", kOptions), "");
  EXPECT_EQ(nearest("r", kOptions), "");
  EXPECT_EQ(nearest(std::string(1'000'000, 'r'), kOptions), "");
  EXPECT_EQ(nearest("bench", {}), "");
}

TEST(Nearest, AnErrorListsWhatIsKnown) {
  EXPECT_EQ(alternatives("tun", kCommands),
            "; did you mean 'tune'? Known are bench, tune, explain, status");
  EXPECT_EQ(alternatives("sing", kCommands), "; known are bench, tune, explain, status");
}

}  // namespace
}  // namespace tutti
