#include "fakes/fake_nccl.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "support/patience.hpp"

namespace tutti {
namespace {

TEST(FakeNccl, RecordsWhatIsAskedPerRank) {
  FakeNccl nccl;
  const NcclId id = *nccl.unique_id();
  const NcclComm comm = *nccl.create({id, 1, 2}, Deadline(test::kPatience));
  NcclReduction call;
  call.count = 5;
  EXPECT_TRUE(nccl.all_reduce(comm, call).is_ok());
  ASSERT_EQ(nccl.calls().size(), 3U);
  EXPECT_EQ(nccl.calls().back().name, "all_reduce");
  EXPECT_EQ(nccl.calls().back().rank, 1);
  EXPECT_EQ(nccl.calls().back().reduction.count, 5U);
  EXPECT_EQ(nccl.open_communicators(), 1);
}

TEST(FakeNccl, RecordsWhatIsGathered) {
  FakeNccl nccl;
  const NcclComm comm = *nccl.create({*nccl.unique_id(), 1, 2}, Deadline(test::kPatience));
  EXPECT_TRUE(nccl.all_gather(comm, {.bytes = 12}).is_ok());
  EXPECT_EQ(nccl.calls().back().name, "all_gather");
  EXPECT_EQ(nccl.calls().back().rank, 1);
  EXPECT_EQ(nccl.calls().back().all_gather.bytes, 12U);
  EXPECT_FALSE(nccl.all_gather(nullptr, {}).is_ok());
  nccl.fail_next("all_gather", Status(StatusCode::kNccl, "no"));
  EXPECT_FALSE(nccl.all_gather(comm, {}).is_ok());
}

TEST(FakeNccl, RecordsWhatIsReducedAndScattered) {
  FakeNccl nccl;
  const NcclComm comm = *nccl.create({*nccl.unique_id(), 1, 2}, Deadline(test::kPatience));
  EXPECT_TRUE(nccl.reduce_scatter(comm, {.count = 12}).is_ok());
  EXPECT_EQ(nccl.calls().back().name, "reduce_scatter");
  EXPECT_EQ(nccl.calls().back().rank, 1);
  EXPECT_EQ(nccl.calls().back().reduction.count, 12U);
  EXPECT_FALSE(nccl.reduce_scatter(nullptr, {}).is_ok());
  nccl.fail_next("reduce_scatter", Status(StatusCode::kNccl, "no"));
  EXPECT_FALSE(nccl.reduce_scatter(comm, {}).is_ok());
}

TEST(FakeNccl, RecordsWhatIsExchanged) {
  FakeNccl nccl;
  const NcclComm comm = *nccl.create({*nccl.unique_id(), 1, 2}, Deadline(test::kPatience));
  EXPECT_TRUE(nccl.exchange(comm, {.sends = {{0, nullptr, 12}}}).is_ok());
  EXPECT_EQ(nccl.calls().back().name, "exchange");
  EXPECT_EQ(nccl.calls().back().rank, 1);
  EXPECT_EQ(nccl.calls().back().exchange.sends.front().bytes, 12U);
  EXPECT_FALSE(nccl.exchange(nullptr, {}).is_ok());
  nccl.fail_next("exchange", Status(StatusCode::kNccl, "no"));
  EXPECT_FALSE(nccl.exchange(comm, {}).is_ok());
}

TEST(FakeNccl, RecordsWhatHasARoot) {
  FakeNccl nccl;
  const NcclComm comm = *nccl.create({*nccl.unique_id(), 1, 2}, Deadline(test::kPatience));
  EXPECT_TRUE(nccl.broadcast(comm, {.bytes = 12, .root = 1}).is_ok());
  EXPECT_EQ(nccl.calls().back().broadcast.root, 1);
  EXPECT_TRUE(nccl.reduce(comm, {.count = 3, .root = 1}).is_ok());
  EXPECT_EQ(nccl.calls().back().reduction.root, 1);
  nccl.fail_next("broadcast", Status(StatusCode::kNccl, "no"));
  EXPECT_FALSE(nccl.broadcast(comm, {}).is_ok());
  nccl.fail_next("reduce", Status(StatusCode::kNccl, "no"));
  EXPECT_FALSE(nccl.reduce(comm, {}).is_ok());
}

TEST(FakeNccl, RefusesWhatTheRealOneCannotTake) {
  FakeNccl nccl;
  const Deadline deadline(test::kPatience);
  const NcclId id = *nccl.unique_id();
  const NcclComm comm = *nccl.create({id, 0, 2}, deadline);
  EXPECT_FALSE(nccl.create({id, 0, 2}, deadline).is_ok());  // there already
  EXPECT_FALSE(nccl.create({id, 2, 2}, deadline).is_ok());
  EXPECT_TRUE(nccl.destroy(comm).is_ok());
  EXPECT_FALSE(nccl.destroy(comm).is_ok());
  EXPECT_FALSE(nccl.all_reduce(comm, {}).is_ok());
  EXPECT_FALSE(nccl.all_reduce(nullptr, {}).is_ok());
  EXPECT_FALSE(nccl.group_end().is_ok());
  EXPECT_EQ(nccl.open_communicators(), 0);
}

TEST(FakeNccl, FailsOnceOnRequest) {
  FakeNccl nccl;
  nccl.fail_next("unique_id", Status(StatusCode::kNccl, "told to"));
  EXPECT_EQ(nccl.unique_id().status().code(), StatusCode::kNccl);
  EXPECT_TRUE(nccl.unique_id().is_ok());
}

// Collective, and it does not end where a rank has failed: until that is aborted.
TEST(FakeNccl, WindowsWaitForEveryRank) {
  FakeNccl nccl;
  const Deadline deadline(test::kPatience);
  const NcclId id = *nccl.unique_id();
  const NcclComm comms[] = {*nccl.create({id, 0, 2}, deadline), *nccl.create({id, 1, 2}, deadline)};
  std::array<std::byte, 64> memory{};
  std::atomic<int> made = 0, failed = 0;
  const auto register_one = [&](int rank) {
    const auto window = nccl.register_window(comms[rank], memory.data(), memory.size());
    ++(window.is_ok() ? made : failed);
    return window;
  };
  {
    const std::jthread other([&] { (void)register_one(1); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(made, 0);
    const auto window = register_one(0);
    EXPECT_TRUE(nccl.all_reduce(comms[0], {.input = memory.data(), .output = &memory[63]}).is_ok());
    EXPECT_TRUE(nccl.calls().back().in_windows);
    EXPECT_TRUE(nccl.deregister_window(comms[0], *window).is_ok());
    EXPECT_FALSE(nccl.deregister_window(comms[0], *window).is_ok());
  }
  EXPECT_EQ(made, 2);
  EXPECT_EQ(nccl.open_windows(), 1);
  nccl.fail_next("register_window", Status(StatusCode::kNccl, "no room"), 1);
  {
    const std::jthread other([&] { (void)register_one(0); });
    (void)register_one(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(failed, 1);
    EXPECT_TRUE(nccl.abort(comms[0]).is_ok());
  }
  EXPECT_EQ(failed, 2);
  EXPECT_TRUE(nccl.destroy(comms[1]).is_ok());
  EXPECT_EQ(nccl.windows_left_behind(), 1);
}

// An operation is over when every rank has called it, or when its communicator is aborted.
TEST(FakeNccl, OperationsWaitForEveryRank) {
  FakeNccl nccl;
  std::vector<FakeNccl::Gate> gates;
  nccl.on_stream = [&](Stream, FakeNccl::Gate gate) { gates.push_back(std::move(gate)); };
  const Deadline deadline(test::kPatience);
  const NcclId id = *nccl.unique_id();
  const NcclComm comms[] = {*nccl.create({id, 0, 2}, deadline), *nccl.create({id, 1, 2}, deadline)};
  for (const int rank : {0, 0, 1}) EXPECT_TRUE(nccl.all_reduce(comms[rank], {}).is_ok());
  EXPECT_TRUE(*gates[0] && *gates[2]);
  EXPECT_FALSE(*gates[1]);
  EXPECT_TRUE(nccl.abort(comms[1]).is_ok());
  EXPECT_FALSE(*gates[1]);
  EXPECT_TRUE(nccl.interrupt(comms[0]).is_ok());
  EXPECT_TRUE(*gates[1]);
  EXPECT_FALSE(nccl.all_reduce(comms[0], {}).is_ok());
  EXPECT_TRUE(nccl.abort(comms[0]).is_ok());
  EXPECT_EQ(nccl.ended_in_use(), 0);
}

}  // namespace
}  // namespace tutti
