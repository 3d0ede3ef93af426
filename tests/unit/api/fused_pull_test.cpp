// all_gather_matmul/fused whose kernel pulls A, on fakes: what is behind what, what the matmul is
// told, and what is refused. The kernel is a thread of the test's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "device/kernel_args.hpp"
#include "fused_ranks.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

std::uint32_t read_shared(const std::uint32_t* word) {
  return std::atomic_ref(*const_cast<std::uint32_t*>(word)).load(std::memory_order_acquire);
}

class PulledRanks : public FusedRanks {
 public:
  PulledRanks(int ranks, std::size_t rows) : FusedRanks(ranks, rows) {
    transport = ArrivalTransport::kPull;
    on_matmul = [this](int rank, Stream stream) { return start_kernel(rank, stream); };
    kernels_.resize(told.size());
    done_.resize(told.size());
  }
  ~PulledRanks() { join(); }

  // All calls have `m` rows of A.
  Status pull(int rank, int seed, std::size_t m) {
    m_ = m;
    seed_ = seed;
    return run(rank, seed, m);
  }
  void finish() {
    for (const Stream stream : streams) require_ok(gpus.cuda.synchronize(stream));
    join();
  }
  std::size_t rows_of(int rank) const {
    const std::size_t first = at(rank) * rows_, m = m_;
    return std::min(m - std::min(m, first), rows_);
  }
  // What the kernel does: copies the rows of other ranks to their place in A.
  void bring(int rank, const Arrival& arrival) {
    for (int of = 0; of < gpus.size(); ++of) {
      if (of == rank) continue;
      EXPECT_NE(arrival.pull.shard[of], nullptr);
      std::memcpy(static_cast<std::byte*>(arrival.pull.to) + at(of) * shard_bytes(),
                  arrival.pull.shard[of], rows_of(of) * kK * 2);
    }
  }

  std::atomic<int> wrong = 0, ended = 0;
  milliseconds work{1};

 private:
  void join() {
    for (auto& kernels : kernels_) kernels.clear();
  }
  // In its stream's order. It pulls late: whoever does not wait for it is noticed.
  Status start_kernel(int rank, Stream stream) {
    const auto begun = std::make_shared<std::atomic<bool>>(false);
    const auto done = std::make_shared<std::uint64_t>(0);
    require_ok(gpus.cuda.enqueue(stream, [begun] {
      *begun = true;
      return Status::ok();
    }));
    const CudaMemoryOperation wait{CudaMemoryOperation::Kind::kWaitAtLeast, done.get(), 1};
    require_ok(gpus.cuda.memory_operations({&wait, 1}, stream));
    done_[at(rank)].push_back(done);
    kernels_[at(rank)].emplace_back(
        [this, rank, begun, done, seed = seed_.load(), arrival = told[at(rank)]->arrival] {
          const std::uint32_t* const go = arrival.flags + arrival.plan.flags();
          while (!*begun || read_shared(go) != arrival.epoch) {
            if (read_shared(arrival.abort) != 0) break;
            std::this_thread::sleep_for(milliseconds(0));
          }
          if (read_shared(arrival.abort) == 0) {
            std::this_thread::sleep_for(work);
            bring(rank, arrival);
            check(rank, seed);
          }
          ++ended;
          std::atomic_ref(*done).store(1);
        });
    return Status::ok();
  }
  void check(int rank, int seed) {
    for (int of = 0; of < gpus.size(); ++of) {
      const std::byte* const rows = piece(rank, of);
      const auto expected = static_cast<std::byte>(seed + of);
      const bool right = of == rank || std::all_of(rows, rows + rows_of(of) * kK * 2,
                                                   [&](std::byte b) { return b == expected; });
      if (!right) ++wrong;
    }
  }

  std::atomic<std::size_t> m_ = 0;
  std::atomic<int> seed_ = 0;
  // By rank.
  std::vector<std::vector<std::shared_ptr<std::uint64_t>>> done_;  // what streams wait for
  std::vector<std::vector<std::jthread>> kernels_;
};

// Fresh shards, and nobody waits between. No shard is read before its rank has written it, nor
// written before all have read it. All shards are whole; the last is shorter; one is empty.
TEST(FusedPull, EveryCallPullsTheShardsAsTheyAreThen) {
  constexpr int kRanks = 3;
  for (const std::size_t m : {3u * 64, 3u * 64 - 2, 1u}) {
    PulledRanks ranks(kRanks, (m + kRanks - 1) / kRanks);
    on_all_ranks(kRanks, [&](int r) { require_ok(ranks.pull(r, 10, m)); });
    for (int seed = 20; seed < 23; ++seed) {
      for (int r = 0; r < kRanks; ++r) require_ok(ranks.pull(r, seed, m));
    }
    ranks.finish();
    EXPECT_EQ(ranks.wrong, 0) << m;
    EXPECT_EQ(ranks.ended, 4 * kRanks);
    for (int r = 0; r < kRanks; ++r) {
      const Arrival& arrival = ranks.told[FusedRanks::at(r)]->arrival;
      EXPECT_EQ(arrival.plan.own, r);
      EXPECT_EQ(arrival.plan.k_groups, 8);
      EXPECT_EQ(arrival.pull.pullers, 16);
      EXPECT_EQ(arrival.pull.lda, kK);
      EXPECT_EQ(arrival.pull.to, ranks.gathered(r));
      EXPECT_EQ(arrival.pull.shard[r], nullptr);
      EXPECT_EQ(arrival.own_a, ranks.shard(r));
      EXPECT_TRUE(std::all_of(arrival.pull.counters, arrival.pull.counters + kMostArrivalFlags,
                              [](std::uint32_t word) { return word == 0; }));
    }
  }
}

// The side stream waits for the caller's (2), a barrier, the go word; the kernel, for which the
// side stream waits (2), a barrier and the mark behind it; the caller's stream waits for that, and
// the mark of the turn.
TEST(FusedPull, ACallEnqueuesAsMuchForAnyNumberOfRanks) {
  for (const int ranks : {2, 4}) {
    PulledRanks gpus(ranks, 64);
    const std::size_t m = FusedRanks::at(ranks) * 64;
    on_all_ranks(ranks, [&](int r) { require_ok(gpus.pull(r, 1, m)); });
    for (int r = 0; r < ranks; ++r) require_ok(gpus.pull(r, 2, m));
    const int before = gpus.enqueued();
    for (int r = 0; r < ranks; ++r) require_ok(gpus.pull(r, 3, m));
    constexpr int kAhead = 2 + 1 + 1, kBehind = 2 + 1 + 1 + 2;
    const int of_test = 2;  // which sets the shard, and waits for its kernel
    EXPECT_EQ(gpus.enqueued() - before, ranks * (kAhead + kBehind + of_test)) << ranks;
    gpus.finish();
  }
}

// The copy of the own rows takes its time, and what the caller writes to them comes later.
TEST(FusedPull, NothingButTheKernelDelaysTheEndOfTheGather) {
  PulledRanks ranks(2, 64);
  on_all_ranks(2, [&](int r) { require_ok(ranks.pull(r, 10, 128)); });
  ranks.finish();
  FakeCuda& cuda = ranks.gpus.cuda;
  ranks.with_own = true;
  std::uint64_t copied = 0;
  cuda.before_copy = [&](std::size_t bytes, Stream stream) {
    if (bytes != ranks.shard_bytes()) return;
    const CudaMemoryOperation wait{CudaMemoryOperation::Kind::kWaitAtLeast, &copied, 1};
    require_ok(cuda.memory_operations({&wait, 1}, stream));
  };
  for (int r = 0; r < 2; ++r) require_ok(ranks.pull(r, 20, 128));
  const Stream behind[] = {ranks.gpus.make_stream(0), ranks.gpus.make_stream(1)};
  for (int r = 0; r < 2; ++r) {
    const std::size_t k = FusedRanks::at(r);
    require_ok(barrier(ranks.gpus.groups[k], {.stream = behind[r]}));
    require_ok(cuda.set_device(r));
    require_ok(cuda.set_async(ranks.shard(r), 30, ranks.shard_bytes(), ranks.streams[k]));
  }
  const Deadline patience(std::chrono::seconds(10));
  const auto gathered = [&] { return ranks.gpus.idle(behind[0]) && ranks.gpus.idle(behind[1]); };
  while (!gathered() && !patience.passed()) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(gathered());
  EXPECT_FALSE(ranks.gpus.idle(ranks.streams[0]) || ranks.gpus.idle(ranks.streams[1]));
  std::atomic_ref(copied).store(1);
  ranks.finish();
  EXPECT_EQ(ranks.wrong, 0);
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(ranks.piece(r, r)[ranks.shard_bytes() - 1], static_cast<std::byte>(20 + r));
    EXPECT_EQ(*ranks.shard(r), std::byte{30});
  }
}

// To the others both transports are the same.
TEST(FusedPull, ARankMayPullWhileAnotherOneHasCopyEngines) {
  PulledRanks ranks(2, 64);
  on_all_ranks(2, [&](int r) { require_ok(ranks.pull(r, 10, 128)); });
  require_ok(ranks.pull(0, 20, 128));
  ranks.transport = ArrivalTransport::kCopyEngine;
  ranks.on_matmul = nullptr;
  require_ok(ranks.pull(1, 20, 128));
  ranks.finish();
  EXPECT_EQ(*ranks.piece(0, 1), std::byte{21});
  EXPECT_EQ(*ranks.piece(1, 0), std::byte{20});
  EXPECT_EQ(ranks.wrong, 0);
}

TEST(FusedPull, WhatItRefusesLeavesTheGroupUsable) {
  PulledRanks ranks(2, 64);
  CommunicatorImpl& group = ranks.gpus.groups[0].impl();
  require_ok(ranks.gpus.cuda.set_device(0));
  FusedGather plain = ranks.call(0, 128);
  plain.gather.input = take(ranks.gpus.cuda.allocate(0, ranks.shard_bytes()));
  EXPECT_EQ(run_fused(group, plain).message(),
            "all_gather_matmul/fused: A has to be in symmetric memory to be pulled");
  EXPECT_EQ(plan_fused(group, plain).status().code(), StatusCode::kUnsupported);
  const auto planned = plan_fused(group, ranks.call(0, 128));
  EXPECT_THAT(planned->config, HasSubstr("A pulled by own_matmul 128x"));
  EXPECT_EQ(planned->why,
            "begins with the own rows, rotated order; A pulled by 16 blocks, 8 k-groups");
  on_all_ranks(2, [&](int r) { require_ok(ranks.pull(r, 40, 128)); });
  ranks.finish();
  EXPECT_EQ(ranks.wrong, 0);
}

// The ranks meet even so: nobody waits for a kernel that has not begun.
TEST(FusedPull, AMatmulThatCannotBeEnqueuedIsTheCallsAnswer) {
  PulledRanks ranks(2, 64);
  const auto pulls = std::exchange(ranks.on_matmul, nullptr);
  ranks.matmul_says = Status(StatusCode::kCuda, "no launch");
  on_all_ranks(2, [&](int r) { EXPECT_EQ(ranks.pull(r, 30, 128).message(), "no launch"); });
  ranks.on_matmul = pulls;
  for (const int r : {0, 1}) require_ok(ranks.pull(r, 31, 128));
  ranks.finish();
  EXPECT_EQ(ranks.wrong, 0);
  EXPECT_EQ(ranks.ended, 2);
}

// The other rank never comes: the kernel is told, and the streams end.
TEST(FusedPull, AFailureEndsTheKernelThatWaitsToBegin) {
  PulledRanks ranks(2, 64);
  on_all_ranks(2, [&](int r) { require_ok(ranks.pull(r, 10, 128)); });
  ranks.finish();
  require_ok(ranks.pull(0, 20, 128));
  EXPECT_FALSE(take(ranks.gpus.cuda.stream_finished(ranks.streams[0])));
  ranks.gpus.groups[1].abort("enough");
  ranks.finish();
  EXPECT_EQ(ranks.ended, 3);
  EXPECT_EQ(ranks.gpus.groups[0].status().code(), StatusCode::kAborted);
}

// Each replay sets the go word anew, behind the ranks' meeting; the matmul is between both
// meetings.
TEST(FusedPull, ReplaysPullBetweenTheirMeetings) {
  constexpr int kRanks = 2;
  static constexpr char kMatmulKernel = 0;
  PulledRanks ranks(kRanks, 64);
  FakeCuda& cuda = ranks.gpus.cuda;
  on_all_ranks(kRanks, [&](int r) { require_ok(ranks.pull(r, 10, 128)); });
  ranks.finish();
  std::array<Arrival, kRanks> captured;
  std::array<int, kRanks> meetings{};
  std::barrier<> meeting{kRanks};
  std::atomic<int> products = 0;
  const auto go = [&](int r) { return captured[FusedRanks::at(r)].flags + kRanks * 8; };
  const auto meet = [&](int r) {
    if (meetings[FusedRanks::at(r)]++ % 2 == 0 && *go(r) != 0) ++ranks.wrong;
    meeting.arrive_and_wait();
    return Status::ok();
  };
  const auto multiply = [&](int r) {
    const Arrival& arrival = captured[FusedRanks::at(r)];
    if (*go(r) != arrival.epoch || meetings[FusedRanks::at(r)] % 2 != 1) ++ranks.wrong;
    ranks.bring(r, arrival);
    ++products;
    return Status::ok();
  };
  cuda.on_captured_launch = [&](const CudaLaunch& launch) -> std::function<Status()> {
    if (launch.kernel == &kMatmulKernel) return [&, r = launch.blocks] { return multiply(r); };
    const int rank = static_cast<const KernelArgs*>(launch.arguments[0])->rank;
    return [&, rank] { return meet(rank); };
  };
  ranks.on_matmul = [&](int rank, Stream stream) {
    captured[FusedRanks::at(rank)] = ranks.told[FusedRanks::at(rank)]->arrival;
    return cuda.launch({.kernel = &kMatmulKernel, .blocks = rank, .stream = stream});
  };
  std::array<CudaGraphExec, kRanks> execs{};
  std::array<CudaGraph, kRanks> graphs{};
  on_all_ranks(kRanks, [&](int r) {
    const Stream stream = ranks.streams[FusedRanks::at(r)];
    require_ok(cuda.set_device(r));
    require_ok(cuda.begin_capture(stream));
    require_ok(run_fused(ranks.gpus.groups[FusedRanks::at(r)].impl(), ranks.call(r, 128)));
    graphs[FusedRanks::at(r)] = take(cuda.end_capture(stream));
    execs[FusedRanks::at(r)] = take(cuda.instantiate(graphs[FusedRanks::at(r)]));
  });
  constexpr int kReplays = 3;
  for (int replay = 0; replay < kReplays; ++replay) {
    on_all_ranks(kRanks, [&](int r) {
      require_ok(cuda.set_device(r));
      std::memset(ranks.shard(r), 50 + 2 * replay + r, ranks.shard_bytes());
      require_ok(cuda.launch_graph(execs[FusedRanks::at(r)], ranks.streams[FusedRanks::at(r)]));
      EXPECT_EQ(*ranks.piece(r, 1 - r), static_cast<std::byte>(50 + 2 * replay + 1 - r));
    });
  }
  EXPECT_EQ(ranks.wrong, 0);
  EXPECT_EQ(products, kRanks * kReplays);
  for (int r = 0; r < kRanks; ++r) {
    require_ok(cuda.destroy_graph_exec(execs[FusedRanks::at(r)]));
    require_ok(cuda.destroy_graph(graphs[FusedRanks::at(r)]));
  }
}

}  // namespace
}  // namespace tutti::test
