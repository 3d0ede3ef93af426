// Ranks that die or stop, and connections that are cut: who is named, and what goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "unit/executors/network/programs.hpp"
#include "unit/executors/network/world.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

World::Setup slow(int ranks) {
  World::Setup setup{ranks};
  setup.network.least_delay = setup.network.most_delay = milliseconds(5);
  return setup;
}

TEST(NetworkFaultTest, AKilledRankIsNamedByThoseWhoNeedIt) {
  World world(slow(3));
  world.start_all({ring, 100});
  world.run_for(milliseconds(7));
  world.network().kill(1);
  world.run_for(milliseconds(20));
  for (const int rank : {0, 2}) {
    EXPECT_EQ(world.failure(rank).code(), StatusCode::kPeerFailed);
    EXPECT_THAT(world.failure(rank).message(),
                AllOf(HasSubstr("task #1"), HasSubstr("rank 1 (host b)"),
                      HasSubstr("the connection was closed")));
  }
}

TEST(NetworkFaultTest, ARankThatHasDoneItsPartMayLeave) {
  World world(slow(3));
  Task task{chain, 100};  // 0 to 1 to 2
  world.start_all(task);
  world.run_for(milliseconds(7));
  ASSERT_TRUE(world.engine(0).idle());
  ASSERT_FALSE(world.engine(2).idle());
  world.network().kill(0);
  world.run_for(milliseconds(20));
  EXPECT_TRUE(world.failure(1).is_ok() && world.engine(1).idle());
  EXPECT_TRUE(world.failure(2).is_ok() && world.engine(2).idle());
  // What needs it from now on fails at once.
  world.start(1, task);
  world.settle();
  EXPECT_EQ(world.failure(1).code(), StatusCode::kPeerFailed);
}

// Rank 0 has sent something to rank 1 alone, and leaves once that has come, or once nobody is there
// any more.
TEST(NetworkFaultTest, a_rank_that_leaves_waits_for_those_to_which_it_has_sent) {
  for (const bool is_killed : {false, true}) {
    World world(slow(3));
    world.start_all({chain, 100});
    world.run_for(milliseconds(7));
    ASSERT_TRUE(world.engine(0).idle());
    world.network().stop(2);
    world.network().stop(1);
    world.engine(0).say_goodbye();
    world.run_for(milliseconds(100));
    EXPECT_FALSE(world.engine(0).may_leave());
    if (is_killed) {
      world.network().kill(1);
    } else {
      world.network().resume(1);
    }
    world.run_for(milliseconds(20));
    EXPECT_TRUE(world.engine(0).may_leave());
  }
}

// Rank 0 waits for rank 2, which waits for rank 1, which is stopped: all name rank 1, and nobody
// else.
TEST(NetworkFaultTest, AStoppedRankIsNamedByAll) {
  World world(slow(3));
  world.start_all({ring, 100});
  world.network().stop(1);
  world.run();
  for (const int rank : {0, 2}) {
    EXPECT_EQ(world.failure(rank).code(), StatusCode::kTimeout);
    EXPECT_THAT(
        world.failure(rank).message(),
        AllOf(HasSubstr("task #1"), HasSubstr("until the deadline"),
              HasSubstr("rank 1 (host b) gave no sign of life for 1.9 s"),
              Not(HasSubstr("rank 0 (host a) gave")), Not(HasSubstr("rank 2 (host c) gave"))));
  }
  EXPECT_THAT(world.failure(0).message(), HasSubstr("waited for data of rank 2 (host c)"));
}

TEST(NetworkFaultTest, AStoppedRankThatGoesOnIsNoFault) {
  World world(slow(3));
  world.start_all({direct, 1000});
  world.network().stop(1);
  world.run_for(milliseconds(1500));
  world.network().resume(1);
  world.run();
  EXPECT_EQ(world.problem(), "");
}

TEST(NetworkFaultTest, ARankThatDoesNotCallIsAlive) {
  World world(slow(3));
  world.start(0, {ring, 100});
  world.start(2, {ring, 100});
  world.run();
  EXPECT_EQ(world.failure(0).code(), StatusCode::kTimeout);
  EXPECT_THAT(world.failure(0).message(),
              AllOf(HasSubstr("all other ranks give signs of life"), Not(HasSubstr("no sign"))));
}

TEST(NetworkFaultTest, AShortDeadlineAsksSooner) {
  World::Setup setup{2};
  setup.network.most_delay = milliseconds(1);
  setup.timeout = milliseconds(80);
  World world(setup);
  world.start_all({ring, 10});
  world.network().stop(1);
  world.run();
  EXPECT_THAT(world.failure(0).message(),
              HasSubstr("rank 1 (host b) gave no sign of life for 0.1"));
}

TEST(NetworkFaultTest, ACutConnectionThatIsRestoredInTimeIsNoFault) {
  World world(slow(4));
  world.start_all({ring, 100});
  world.start_all({direct, 100});
  world.run_for(milliseconds(7));
  world.network().cut(0, 1);
  world.network().cut(2, 1);
  world.run_for(milliseconds(1900));
  EXPECT_FALSE(world.is_idle());
  world.network().restore(0, 1);
  world.network().restore(2, 1);
  world.run();
  EXPECT_EQ(world.problem(), "");
}

TEST(NetworkFaultTest, ACutConnectionIsNamedAtItsEnds) {
  World world(slow(4));
  world.start_all({direct, 100});
  world.network().cut(0, 1);
  world.run();
  EXPECT_THAT(world.failure(0).message(), HasSubstr("rank 1 (host b) gave no sign of life"));
  EXPECT_THAT(world.failure(1).message(), HasSubstr("rank 0 (host a) gave no sign of life"));
  EXPECT_THAT(world.failure(0).message(), Not(HasSubstr("rank 2 (host c) gave")));
  // Too late: nothing of it is used.
  world.network().restore(0, 1);
  world.run_for(milliseconds(100));
  EXPECT_EQ(world.failure(0).code(), StatusCode::kTimeout);
}

TEST(NetworkFaultTest, ACancelFreesAllBuffers) {
  World world(slow(2));
  world.start_all({ring, 100'000});
  world.settle();
  world.engine(0).cancel();
  EXPECT_TRUE(world.engine(0).idle());
  EXPECT_TRUE(world.engine(0).has_ended(1));
  EXPECT_EQ(world.engine(0).kept_bytes(), 0U);
  EXPECT_TRUE(world.network().record(0).cancelled);
  EXPECT_EQ(world.engine(0).progress(world.network().now()).status().code(), StatusCode::kAborted);
}

}  // namespace
}  // namespace tutti::test
