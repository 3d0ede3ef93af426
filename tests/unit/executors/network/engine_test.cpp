#include "executors/network/engine.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "executors/network/message.hpp"
#include "unit/executors/network/programs.hpp"
#include "unit/executors/network/world.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

constexpr NetworkSchedule kOfTheGroup[] = {ring, direct, chain, star, gather, assemble, rendezvous};

TEST(NetworkEngineTest, EveryProgramWithAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const NetworkSchedule schedule : kOfTheGroup) {
      for (const std::size_t count : {0, 1, 7, 100, 1000}) {
        if (ranks == 1 && schedule == ring) continue;  // has no step that copies
        World world({ranks});
        Task task{schedule, count};
        task.root = ranks - 1;
        world.start_all(task);
        if (schedule == ring || schedule == direct) {
          task.in_place = true;
          world.start_all(task);
        }
        world.run();
        EXPECT_EQ(world.problem(), "") << ranks << " ranks, " << count << " elements";
        EXPECT_TRUE(world.is_idle());
      }
    }
  }
}

// An average is divided once; a multiplier is applied once, also to what is sent as it is.
TEST(NetworkEngineTest, AveragesAndMultipliers) {
  for (const NetworkSchedule schedule : {ring, direct}) {
    for (const OpKind op : {OpKind::kAvg, OpKind::kPreMulSum}) {
      World::Setup setup{3};
      setup.network.most_sent_delay = milliseconds(1);
      World world(setup);
      Task task{schedule, 100};
      task.op = op;
      world.start_all(task);
      world.run();
      EXPECT_EQ(world.problem(), "") << to_string(op);
    }
  }
}

TEST(NetworkEngineTest, LargeMessagesNeedCreditsAndPartitions) {
  for (const NetworkSchedule schedule : {ring, direct, chain, star}) {
    World::Setup setup{3};
    setup.network.most_delay = milliseconds(1);
    setup.most_scratch_bytes = 300'000;
    World world(setup);
    Task task{schedule, 600'001};
    task.chunk_bytes = 64 * 1024;
    world.start_all(task);
    world.start_all(task);
    world.run();
    EXPECT_EQ(world.problem(), "");
  }
}

// What a root sends of operations that the others have not begun stays little, however far it is
// ahead, and is used when they come.
TEST(NetworkEngineTest, ARootThatRunsAheadFillsNoMemory) {
  for (const std::size_t count : {1'000, 30'000, 200'000}) {  // 200 operations' worth, or one's
    World world({3});
    Task task{star, count};
    task.chunk_bytes = 16 * 1024;
    const int operations = count == 1'000 ? 1000 : 30;
    for (int k = 0; k < operations; ++k) world.start(0, task);
    world.settle();
    EXPECT_FALSE(world.is_idle());
    for (const int rank : {1, 2}) {
      EXPECT_GT(world.most_kept(rank), 0U);
      EXPECT_LE(world.most_kept(rank),
                NetworkEngine::kOperationsAhead * NetworkEngine::kUnaskedBytes);
    }
    for (int k = 0; k < operations; ++k) world.start(1, task);
    for (int k = 0; k < operations; ++k) world.start(2, task);
    world.run();
    EXPECT_EQ(world.problem(), "");
    EXPECT_EQ(world.engine(1).ended_through(), static_cast<std::uint64_t>(operations));
    EXPECT_EQ(world.engine(1).kept_bytes(), 0U);
  }
}

// The other way: leaves begin everything long before the root.
TEST(NetworkEngineTest, LeavesMayRunAheadToo) {
  World world({3});
  Task task{star, 70'000};
  task.chunk_bytes = 64 * 1024;
  for (int k = 0; k < 50; ++k) world.start(1, task);
  world.settle();
  for (int k = 0; k < 50; ++k) world.start(0, task);
  world.settle();
  for (int k = 0; k < 50; ++k) world.start(2, task);
  world.run();
  EXPECT_EQ(world.problem(), "");
}

// Memory for scratch is shared by operations: the later ones wait for it.
TEST(NetworkEngineTest, OperationsWaitForScratch) {
  World::Setup setup{3};
  setup.most_scratch_bytes = 1000;
  setup.network.most_delay = milliseconds(2);
  World world(setup);
  for (int k = 0; k < 20; ++k) world.start_all({direct, 1000});
  world.run();
  EXPECT_EQ(world.problem(), "");
}

TEST(NetworkEngineTest, PairsAreCountedApart) {
  World::Setup setup{3};
  setup.network.most_delay = milliseconds(2);
  World world(setup);
  const auto send = [&](int from, int to, std::size_t count) {
    Task task{pass_on, count, to};
    task.pair = NetworkOperation::Pair{from, to};
    task.chunk_bytes = 16 * 1024;
    world.start(from, task);
  };
  const auto receive = [&](int from, int to, std::size_t count) {
    Task task{take_from, count, from};
    task.pair = NetworkOperation::Pair{from, to};
    task.chunk_bytes = 16 * 1024;
    world.start(to, task);
  };
  // 0 and 1 send to each other, 2 takes part in none of it; in other orders on both sides.
  for (std::size_t k = 1; k <= 40; ++k) send(0, 1, 1000 * k);
  for (std::size_t k = 1; k <= 40; ++k) receive(1, 0, 10 * k);
  world.start_all({ring, 100});
  world.settle();
  for (std::size_t k = 1; k <= 40; ++k) send(1, 0, 10 * k);
  for (std::size_t k = 1; k <= 40; ++k) receive(0, 1, 1000 * k);
  send(2, 0, 5);
  receive(2, 0, 5);
  world.start_all({ring, 100});
  world.run();
  EXPECT_EQ(world.problem(), "");
}

TEST(NetworkEngineTest, TicketsEndInAnyOrder) {
  World world({2});
  const auto whole = world.start(0, {ring, 10});
  Task task{pass_on, 10, 1};
  task.pair = NetworkOperation::Pair{0, 1};
  const auto pair = world.start(0, task);
  world.settle();
  EXPECT_TRUE(world.engine(0).has_ended(pair));
  EXPECT_FALSE(world.engine(0).has_ended(whole));
  EXPECT_EQ(world.engine(0).ended_through(), 0U);
  EXPECT_FALSE(world.engine(0).has_ended(99));
  EXPECT_THAT(world.engine(0).position(),
              AllOf(HasSubstr("task #1"), HasSubstr("data of rank 1 (host b)")));
  world.start(1, {ring, 10});
  world.settle();
  EXPECT_EQ(world.engine(0).ended_through(), 2U);
  EXPECT_EQ(world.engine(0).position(), "");
}

TEST(NetworkEngineTest, AnotherOperationIsNamed) {
  for (const bool early : {false, true}) {  // whether rank 1's message waits for rank 0's call
    World::Setup setup;
    setup.network.least_delay = setup.network.most_delay = milliseconds(1);
    World world(setup);
    Task task{ring, 10};
    Task other = task;
    other.signature = 0xabc;
    world.start(1, other);
    if (early) world.run_for(milliseconds(2));
    world.start(0, task);
    world.run();
    ASSERT_EQ(world.failure(0).code(), StatusCode::kMismatch);
    EXPECT_THAT(world.failure(0).message(),
                AllOf(HasSubstr("task #1: run by rank 0 (host a) (signature 00000007)"),
                      HasSubstr("rank 1 (host b) runs another operation"), HasSubstr("00000abc"),
                      HasSubstr("same order")));
    EXPECT_EQ(world.engine(0).progress(world.network().now()).status().code(),
              StatusCode::kMismatch);
  }
}

// Messages that no rank of the group sends.
class Injected : public testing::Test {
 protected:
  // A chunk of the ring's first step from rank 1 to rank 0, of 6 elements in chunks of 4.
  NetworkMessage message() const {
    NetworkMessage one;
    one.group = 99;
    one.from = 1;
    one.sequence = 1;
    one.signature = 7;
    return one;
  }
  // What rank 0 says to it, before rank 1 itself begins.
  Status inject(const NetworkMessage& what, std::size_t payload) {
    const NetworkHeader header = to_header(what);
    world.network().inject(0, to_bytes(header), Bytes(payload));
    world.settle();
    return world.failure(0);
  }
  void begin() {
    Task task{ring, 12};
    task.chunk_bytes = 16;
    world.start(0, task);
    world.settle();
  }
  World world{World::Setup{2}};
};

TEST_F(Injected, WhatIsNotTheGroupsIsDropped) {
  begin();
  NetworkMessage other = message();
  other.group = 98;
  EXPECT_TRUE(inject(other, 16).is_ok());
  other = message();
  other.from = 2;
  EXPECT_TRUE(inject(other, 16).is_ok());
  other.from = 0;
  EXPECT_TRUE(inject(other, 16).is_ok());
  world.network().inject(0, Bytes(40), Bytes(16));
  world.network().inject(0, {}, {});
  Task task{ring, 12};
  task.chunk_bytes = 16;
  world.start(1, task);
  world.run();
  EXPECT_EQ(world.problem(), "");
}

TEST_F(Injected, WhatComesAgainIsDropped) {
  begin();
  Task task{ring, 12};
  task.chunk_bytes = 16;
  world.start(1, task);
  world.run();
  EXPECT_TRUE(inject(message(), 16).is_ok());
}

// The second phase's receive waits until the share that it overwrites was sent.
TEST(NetworkEngineTest, WhatComesBeforeItsTimeIsKeptOnce) {
  World::Setup setup;
  setup.network.least_sent_delay = setup.network.most_sent_delay = milliseconds(10);
  World world(setup);
  world.start(0, {ring, 12});
  world.settle();
  NetworkMessage early;
  early.group = 99;
  early.from = 1;
  early.sequence = 1;
  early.signature = 7;
  early.step = 1;
  const NetworkHeader header = to_header(early);
  for (int k = 0; k < 2; ++k) {
    world.network().inject(0, to_bytes(header), Bytes(24));
    world.settle();
    EXPECT_EQ(world.failure(0).message(), "");
    EXPECT_EQ(world.engine(0).kept_bytes(), 24U);
  }
}

struct WrongChunk {
  const char* name;
  void (*change)(NetworkMessage&);
  std::size_t bytes;
  const char* text;
};
class WrongChunks : public Injected, public testing::WithParamInterface<WrongChunk> {};

TEST_P(WrongChunks, AreAMismatch) {
  begin();
  NetworkMessage wrong = message();
  GetParam().change(wrong);
  const Status failure = inject(wrong, GetParam().bytes);
  EXPECT_EQ(failure.code(), StatusCode::kMismatch);
  EXPECT_THAT(failure.message(), AllOf(HasSubstr("rank 1 (host b)"), HasSubstr(GetParam().text)));
}

INSTANTIATE_TEST_SUITE_P(
    Network, WrongChunks,
    testing::Values(WrongChunk{"chunk", [](NetworkMessage& m) { m.chunk = 2; }, 16, "out of range"},
                    WrongChunk{"step", [](NetworkMessage& m) { m.step = 2; }, 16, "not expected"},
                    WrongChunk{"partition", [](NetworkMessage& m) { m.partition = 1; }, 16,
                               "no partition"},
                    WrongChunk{"size", [](NetworkMessage&) {}, 12, "12 bytes instead of 16"}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(Injected, MoreThanWasAgreedIsRefused) {
  NetworkMessage far = message();
  far.sequence = NetworkEngine::kOperationsAhead;
  EXPECT_EQ(inject(far, 16).code(), StatusCode::kMismatch);
}

TEST_F(Injected, AndSoAreTooManyBytes) {
  NetworkMessage early = message();
  EXPECT_TRUE(inject(early, NetworkEngine::kUnaskedBytes / 2).is_ok());
  EXPECT_EQ(inject(early, NetworkEngine::kUnaskedBytes / 2).code(), StatusCode::kMismatch);
}

}  // namespace
}  // namespace tutti::test
