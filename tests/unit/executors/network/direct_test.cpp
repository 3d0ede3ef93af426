// Data of GPUs that the wire moves itself: which programs can, what is sent when, and that each
// rule of it is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "algorithms/all_gather/network_direct.hpp"
#include "algorithms/catalogue.hpp"
#include "algorithms/network_steps.hpp"
#include "executors/network/direct_transfers.hpp"
#include "executors/network/progress.hpp"
#include "executors/network/staged_operations.hpp"
#include "fakes/fake_cuda.hpp"
#include "fakes/thread_wire.hpp"
#include "support/check.hpp"
#include "support/copy_kernels.hpp"
#include "support/patience.hpp"
#include "support/ranks.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using Ints = std::vector<std::int32_t>;

TEST(DirectTransfers, ProgramsOfCollectivesThatMoveDataCanBeDirect) {
  int moving = 0;
  for (const Algorithm& row : catalogue()) {
    if (row.network == nullptr || reduces(row.collective)) continue;
    if (row.collective == Collective::kBarrier) continue;  // has no data
    ++moving;
    for (const int ranks : {2, 3, 4, 7}) {
      for (int rank = 0; rank < ranks; ++rank) {
        NetworkShape shape{.rank = rank, .ranks = ranks, .root = 1, .to = 0, .count = 1000};
        if (has_pieces(row.collective)) shape.stride = 1200;
        EXPECT_TRUE(only_moves(row.network(shape))) << row.id << ", rank " << rank;
      }
    }
  }
  EXPECT_GE(moving, 8);
}

TEST(DirectTransfers, ProgramsWithSumsScratchOrLateReceivesCannot) {
  const NetworkShape shape{.rank = 0, .ranks = 2, .count = 10};
  const Range all{0, shape.count};
  const auto of = [&](const auto& write) {
    NetworkSteps steps(shape);
    write(steps);
    return steps.take();
  };
  EXPECT_TRUE(only_moves(of([&](NetworkSteps& steps) {
    const int came = steps.receive(1, all, output_at(0));
    steps.send(1, all, output_at(0), {came});
    steps.copy(all, input_at(0), output_at(10));
  })));
  EXPECT_FALSE(only_moves(of([&](NetworkSteps& steps) {
    steps.sum(all, {input_at(0), input_at(0)}, output_at(0));
  })));
  EXPECT_FALSE(only_moves(of([&](NetworkSteps& steps) { steps.take_scratch(1, 10); })));
  EXPECT_FALSE(only_moves(of([&](NetworkSteps& steps) {
    steps.receive(1, all, output_at(0), {steps.send(1, all, output_at(0))});
  })));
  EXPECT_FALSE(only_moves(of([&](NetworkSteps& steps) {
    steps.copy(all, input_at(0), output_at(0), {steps.receive(1, all, input_at(0))});
  })));
  EXPECT_FALSE(only_moves(of([&](NetworkSteps& steps) {
    steps.copy(all, input_at(0), output_at(0));
    steps.copy(all, input_at(0), output_at(10));
  })));
}

StagedTransfer message_of(std::size_t bytes) {
  StagedTransfer transfer;
  transfer.what.schedule = [](const NetworkShape& shape) {
    NetworkSteps steps(shape);
    steps.copy({0, shape.count}, input_at(0), output_at(0));
    return steps.take();
  };
  transfer.what.shape.count = bytes / sizeof(std::int32_t);
  transfer.what.dtype = DataType::kInt32;
  return transfer;
}

TEST(DirectTransfers, SmallAndLocalOnesStayStaged) {
  const auto made = [](StagedTransfer transfer) {
    make_direct_if_worth(transfer);
    return transfer;
  };
  EXPECT_FALSE(made(message_of(kLeastDirectBytes - 4)).what.on_gpu);
  EXPECT_TRUE(made(message_of(kLeastDirectBytes)).what.on_gpu);
  EXPECT_GE(made(message_of(kLeastDirectBytes)).what.chunk_bytes, kDirectChunkBytes);
  StagedTransfer local = message_of(kLeastDirectBytes);
  local.is_local = true;
  EXPECT_FALSE(made(local).what.on_gpu);
  // In place there is nothing to copy.
  StagedTransfer apart = message_of(kLeastDirectBytes);
  Ints buffer(2);
  apart.what.input = reinterpret_cast<const std::byte*>(buffer.data());
  apart.what.output = reinterpret_cast<std::byte*>(buffer.data());
  EXPECT_EQ(made(apart).own.rows, 0u);
  apart.what.output += sizeof(std::int32_t);
  EXPECT_EQ(made(apart).own.rows, 1u);
  EXPECT_EQ(made(apart).own.bytes, kLeastDirectBytes);
}

struct Seen {
  bool right = true;  // of every rank, when its stream has come to the end
  Status failure;
  std::size_t placed = 0, misplaced = 0;
};

// Of two ranks, the second of which calls later than the first.
Seen run_late(NetworkRule of_engine, CopyRule of_host, std::chrono::nanoseconds limit = kPatience) {
  constexpr int kRanks = 2;
  constexpr std::size_t kCount = 300'000;  // several chunks
  ThreadNetwork network;
  std::vector<std::unique_ptr<Wire>> wires;
  for (int rank = 0; rank < kRanks; ++rank) wires.push_back(network.open(true));
  require_ok(wires[0]->connect(1, wires[1]->address()));
  require_ok(wires[1]->connect(0, wires[0]->address()));
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(kRanks));
  CopyKernels<> kernels(cuda);
  std::mutex mutex;
  Seen seen;
  Ints expected;
  for (std::size_t k = 0; k < 2 * kCount; ++k) expected.push_back(static_cast<std::int32_t>(k));
  std::vector<Ints> outputs(kRanks, Ints(2 * kCount, -1));
  on_all_ranks(kRanks, [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    NetworkProgress::Setup setup{
        .wire = std::move(wires[at]),
        .group = {.id = 7,
                  .rank = rank,
                  .ranks = kRanks,
                  .name = [](int named) { return "rank " + std::to_string(named); },
                  .omitted = of_engine},
        .staged = take(StagedOperations::create({.cuda = cuda,
                                                 .device = rank,
                                                 .ranks = kRanks,
                                                 .staging_bytes = 4096,
                                                 .timeout = limit,
                                                 .omitted = of_host})),
        .direct = true,
        .failed = [&](const Status& why, int) {
          const std::lock_guard lock(mutex);
          if (seen.failure.is_ok()) seen.failure = why;
        }};
    StagedOperations& staged = *setup.staged;
    const auto progress = take(NetworkProgress::start(std::move(setup)));
    Stream const stream = take(cuda.create_stream(rank));
    StagedTransfer transfer{
        .what = {.schedule = AllGatherNetworkDirect::program,
                 .shape =
                     {.rank = rank, .ranks = kRanks, .count = kCount, .stride = kCount, .unit = 16},
                 .dtype = DataType::kInt32,
                 .input = reinterpret_cast<const std::byte*>(expected.data() + at * kCount),
                 .output = reinterpret_cast<std::byte*>(outputs[at].data()),
                 .signature = 7,
                 .text = "exchange"},
        .input_rows = 1,
        .output_rows = kRanks,
        .most_rows = kRanks};
    make_direct_if_worth(transfer);
    if (rank == 1) std::this_thread::sleep_for(milliseconds(20));
    take(staged.enqueue({.transfers = {transfer}, .timeout = limit}, stream));
    progress->wake();
    require_ok(cuda.synchronize(stream));
    const bool right = outputs[at] == expected;
    const std::lock_guard lock(mutex);
    seen.right = seen.right && right;
  });
  seen.placed = network.placed();
  seen.misplaced = network.misplaced();
  return seen;
}

TEST(DirectTransfers, ChunksGoFromGpuToGpuOnceThePeerHasAPlace) {
  const Seen seen = run_late(NetworkRule::kNone, CopyRule::kNone);
  EXPECT_TRUE(seen.right);
  EXPECT_TRUE(seen.failure.is_ok()) << seen.failure.to_string();
  EXPECT_EQ(seen.placed, 6u);  // 1.2 MB each way, in chunks of 512 KiB
  EXPECT_EQ(seen.misplaced, 0u);
}

TEST(DirectTransfers, EachRuleIsNeeded) {
  const Seen early = run_late(NetworkRule::kPlaced, CopyRule::kNone, milliseconds(300));
  EXPECT_GT(early.misplaced, 0u);
  EXPECT_FALSE(early.right);
  EXPECT_EQ(early.failure.code(), StatusCode::kMismatch) << early.failure.to_string();
  EXPECT_FALSE(run_late(NetworkRule::kNone, CopyRule::kArrived).right);
}

}  // namespace
}  // namespace tutti::test
