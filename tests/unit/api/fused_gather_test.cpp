// all_gather_matmul/fused on fakes: what is gathered and announced, what the matmul is told of it,
// and what is refused.
#include "api/fused_gather.hpp"

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
#include <optional>
#include <utility>
#include <vector>

#include "device/kernel_args.hpp"
#include "fused_ranks.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

TEST(FusedGather, EveryChunkOfOtherRanksIsThereOnceItsWordSaysSo) {
  constexpr int kRanks = 3;
  FusedRanks ranks(kRanks, 128);
  on_all_ranks(kRanks, [&](int r) { require_ok(ranks.run(r, 10)); });
  for (int seed = 20; seed < 24; ++seed) {  // nobody waits between
    for (int r = 0; r < kRanks; ++r) require_ok(ranks.run(r, seed));
  }
  for (int r = 0; r < kRanks; ++r) {
    require_ok(ranks.gpus.cuda.synchronize(ranks.streams[FusedRanks::at(r)]));
    const FusedRanks::Told& told = *ranks.told[FusedRanks::at(r)];
    EXPECT_EQ(told.arrival.plan.own, r);
    EXPECT_EQ(told.arrival.plan.shards, kRanks);
    EXPECT_EQ(told.arrival.own_a, ranks.shard(r));
    EXPECT_EQ(told.arrival.epoch, 5u);
    EXPECT_EQ(told.multiprocessors, ranks.gpus.cuda.properties(r)->multiprocessors);
    for (int of = 0; of < kRanks; ++of) {
      const int chunks = told.arrival.plan.chunks;
      for (int chunk = 0; chunk < chunks; ++chunk) {
        EXPECT_EQ(told.arrival.flags[of * chunks + chunk], of == r ? 0u : 5u);
      }
      // The own rows are not brought.
      const auto expected = static_cast<std::byte>(of == r ? 0 : 23 + of);
      const std::byte* const piece = ranks.piece(r, of);
      EXPECT_TRUE(std::all_of(piece, piece + ranks.shard_bytes(),
                              [&](std::byte value) { return value == expected; }))
          << r << " " << of;
    }
  }
  EXPECT_EQ(ranks.gpus.cuda.calls("launch"), 0) << "nothing needs an SM beside the matmul";
}

// Each takes the host some microseconds, during which the kernel does not run. Where a call follows
// one on the same stream: the side stream waits for the caller's (2), a barrier, a copy for each
// chunk and a write of its word, of which the last one is the other barrier's, and the mark behind
// them; the matmul; then the caller's stream waits for the side stream, and the mark of the turn.
TEST(FusedGather, ACallEnqueuesNoMoreThanItNeeds) {
  for (const int ranks : {2, 4}) {
    FusedRanks gpus(ranks, 128);
    on_all_ranks(ranks, [&](int r) { require_ok(gpus.run(r, 1)); });
    for (int r = 0; r < ranks; ++r) require_ok(gpus.run(r, 2));
    const int before = gpus.enqueued();
    for (int r = 0; r < ranks; ++r) require_ok(gpus.run(r, 3));
    constexpr int kAhead = 2 + 1 + 1, kBehind = 2;
    const int chunks = ranks - 1;  // of one chunk each
    const int of_test = 1;         // which sets the shard
    EXPECT_EQ(gpus.enqueued() - before, ranks * (kAhead + 2 * chunks + kBehind + of_test)) << ranks;
    for (const Stream stream : gpus.streams) require_ok(gpus.gpus.cuda.synchronize(stream));
  }
}

// The last shard is shorter; it is empty; there is one alone. Ranks without rows take part.
TEST(FusedGather, NothingIsBroughtFromBehindTheLastRow) {
  constexpr int kRanks = 3;
  for (const std::size_t m : {300u, 4u, 1u}) {
    FusedRanks ranks(kRanks, (m + kRanks - 1) / kRanks);
    on_all_ranks(kRanks, [&](int r) {
      std::memset(ranks.gathered(r), 0xff, kRanks * ranks.shard_bytes());
      require_ok(ranks.run(r, 10, m));
    });
    for (int r = 0; r < kRanks; ++r) {
      require_ok(ranks.gpus.cuda.synchronize(ranks.streams[FusedRanks::at(r)]));
      const Arrival& arrival = ranks.told[FusedRanks::at(r)]->arrival;
      ASSERT_EQ(arrival.plan.chunks, 1);
      for (int of = 0; of < kRanks; ++of) {
        const std::size_t first = FusedRanks::at(of) * ranks.rows_;
        const std::size_t rows = std::min(m - std::min(m, first), ranks.rows_);
        const bool comes = of != r && rows > 0;
        EXPECT_EQ(arrival.flags[of], comes ? arrival.epoch : 0u) << m << " " << r << " " << of;
        for (std::size_t row = 0; row < ranks.rows_; ++row) {
          const bool is_there = of != r && row < rows;
          EXPECT_EQ(ranks.piece(r, of)[row * kK * 2], std::byte(is_there ? 10 + of : 0xff));
        }
      }
    }
  }
}

// So far as there are any.
TEST(FusedGather, TheOwnRowsAreBroughtWhereTheyAreAskedFor) {
  constexpr std::size_t kRows = 128, kMissing = 28;
  FusedRanks ranks(2, kRows);
  ranks.with_own = true;
  on_all_ranks(2, [&](int r) {
    std::memset(ranks.gathered(r), 0xff, 2 * ranks.shard_bytes());
    require_ok(ranks.run(r, 9, 2 * kRows - kMissing));
  });
  for (int r = 0; r < 2; ++r) {
    require_ok(ranks.gpus.cuda.synchronize(ranks.streams[FusedRanks::at(r)]));
    for (int of = 0; of < 2; ++of) {
      const auto expected = static_cast<std::byte>(9 + of);
      const std::byte* const piece = ranks.piece(r, of);
      const std::size_t rows = of == 0 ? kRows : kRows - kMissing;
      EXPECT_EQ(piece[0], expected) << r << " " << of;
      EXPECT_EQ(piece[rows * kK * 2 - 1], expected) << r << " " << of;
      if (rows < kRows) {
        EXPECT_EQ(piece[rows * kK * 2], std::byte{0xff}) << r;
      }
    }
  }
}

// The kernel takes every SM: what is before the all-gather has to have had its own.
TEST(FusedGather, TheMatmulIsBehindEarlierOperationsOfAllStreams) {
  FusedRanks ranks(2, 128);
  on_all_ranks(2, [&](int r) { require_ok(ranks.run(r, 10)); });
  const Stream other = ranks.gpus.make_stream(0);
  const auto busy = ranks.gpus.occupy(other);
  require_ok(barrier(ranks.gpus.groups[0], {.stream = other}));
  require_ok(barrier(ranks.gpus.groups[1], {.stream = ranks.streams[1]}));
  bool is_behind = false;
  ranks.on_matmul = [&](int rank, Stream stream) {
    if (rank == 0) is_behind = !ranks.gpus.idle(stream);
    return Status::ok();
  };
  for (const int r : {0, 1}) require_ok(ranks.run(r, 20));
  EXPECT_TRUE(is_behind);
  *busy = true;
  for (const Stream stream : ranks.streams) require_ok(ranks.gpus.cuda.synchronize(stream));
}

// Another thread has enqueued them since the turn began.
TEST(FusedGather, TheMatmulIsBehindOperationsThatCameBetweenItsTurnAndItsGather) {
  FusedRanks ranks(2, 128);
  on_all_ranks(2, [&](int r) { require_ok(ranks.run(r, 10)); });
  const auto start = [&](int r, Stream meanwhile) {
    CommunicatorImpl& group = ranks.gpus.groups[FusedRanks::at(r)].impl();
    const Stream stream = ranks.streams[FusedRanks::at(r)];
    require_ok(ranks.gpus.cuda.set_device(r));
    ArrivalLane::Turn turn = take(group.begin_arrivals(stream, 1));
    require_ok(barrier(ranks.gpus.groups[FusedRanks::at(r)], {.stream = meanwhile}));
    tutti::Call gather = by_copy_engine(ranks.call(r, 256).gather);
    gather.stream = turn.side;
    gather.arrivals.words = turn.words;
    gather.arrivals.value = turn.number;
    gather.arrivals.piece_bytes = gather.arrivals.chunk_bytes = ranks.shard_bytes();
    gather.arrivals.kernel_stream = stream;
    PlannedOperation planned = take(group.prepare(gather));
    require_ok(group.start(planned));
    require_ok(group.settle(planned, Status::ok()));
    return turn;
  };
  const Stream other = ranks.gpus.make_stream(0);
  const auto busy = ranks.gpus.occupy(other);
  ArrivalLane::Turn here = start(0, other);
  EXPECT_FALSE(ranks.gpus.idle(ranks.streams[0]));
  *busy = true;
  EXPECT_TRUE(ranks.gpus.idle(ranks.streams[0]));
  ArrivalLane::Turn there = start(1, ranks.streams[1]);
  require_ok(ranks.gpus.groups[0].impl().end_arrivals(std::move(here), ranks.streams[0]));
  require_ok(ranks.gpus.groups[1].impl().end_arrivals(std::move(there), ranks.streams[1]));
  for (const Stream stream : ranks.streams) require_ok(ranks.gpus.cuda.synchronize(stream));
}

// The kernel's deadline is a constant of its launch: set_timeout() is followed by the next call.
TEST(FusedGather, TheMatmulsWaitsHaveTheTimeoutOfTheCallAndAMinute) {
  FusedRanks ranks(2, 128);
  on_all_ranks(2, [&](int r) { require_ok(ranks.run(r, 10)); });
  const auto timeout_of = [&](int r) {
    return std::chrono::nanoseconds(ranks.told[FusedRanks::at(r)]->arrival.timeout_ns);
  };
  for (const std::chrono::seconds timeout : {std::chrono::seconds(7), std::chrono::seconds(300)}) {
    require_ok(ranks.gpus.groups[0].set_timeout(timeout));
    const auto usual = timeout_of(1);
    for (const int r : {0, 1}) require_ok(ranks.run(r, 20));
    EXPECT_EQ(timeout_of(0), timeout + std::chrono::minutes(1));
    EXPECT_EQ(timeout_of(1), usual);
  }
  for (const Stream stream : ranks.streams) require_ok(ranks.gpus.cuda.synchronize(stream));
}

TEST(FusedGather, WhatItRefusesLeavesTheGroupUsable) {
  FusedRanks ranks(2, 128);
  CommunicatorImpl& group = ranks.gpus.groups[0].impl();
  const auto refusal = [&](const FusedGather& call) {
    const Status status = run_fused(group, call);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    return status.message();
  };
  require_ok(ranks.gpus.cuda.set_device(0));
  require_ok(ranks.gpus.cuda.begin_capture(ranks.streams[0]));
  EXPECT_EQ(refusal(ranks.call(0, 256)),
            "all_gather_matmul/fused: call plan() of such a call once before the capture");
  (void)ranks.gpus.cuda.end_capture(ranks.streams[0]);
  const std::byte* const plain = take(ranks.gpus.cuda.allocate(0, ranks.shard_bytes()));
  FusedGather staged = ranks.call(0, 256);
  staged.gather.input = plain;
  EXPECT_EQ(plan_fused(group, staged).status().message(),
            "all_gather_matmul/fused: A has to be in symmetric memory, and where ranks are threads "
            "not cudaMalloc's");
  FusedGather uneven = ranks.call(0, 255);
  uneven.gather.input = plain;
  EXPECT_EQ(plan_fused(group, uneven).status().message(),
            "all_gather_matmul/fused: A has to be in symmetric memory, also that of ranks with "
            "fewer rows, or without");
  FusedGather fp32 = ranks.call(0, 256);
  fp32.product.dtype = DataType::kFloat32;
  EXPECT_THAT(refusal(fp32), HasSubstr("it multiplies bf16 and fp16, not fp32"));
  FusedGather unaligned = ranks.call(0, 256);
  unaligned.gather.input = ranks.shard(0) + 2;
  EXPECT_THAT(refusal(unaligned), HasSubstr("not aligned to 16 bytes"));
  on_all_ranks(2, [&](int r) { require_ok(ranks.run(r, 40)); });
}

// Captured calls of two ranks. The fake's graphs run in the order of their capture, with kernels
// that do what this says.
class CapturedFused : public testing::Test {
 protected:
  CapturedFused() {
    FakeCuda& cuda = ranks.gpus.cuda;
    on_all_ranks(kRanks, [&](int r) { require_ok(ranks.run(r, 10)); });
    for (int r = 0; r < kRanks; ++r) others.push_back(ranks.gpus.make_stream(r));
    cuda.on_captured_launch = [this](const CudaLaunch& launch) -> std::function<Status()> {
      if (launch.kernel == &kMatmulKernel) return [this, r = launch.blocks] { return multiply(r); };
      const int rank = static_cast<const KernelArgs*>(launch.arguments[0])->rank;
      return [this, rank] { return meet_ranks(rank); };
    };
    ranks.on_matmul = [&cuda](int rank, Stream stream) {
      const bool capturing = take(cuda.capture_of(stream)).state != CudaCapture::State::kNone;
      if (!capturing) return Status::ok();
      return cuda.launch({.kernel = &kMatmulKernel, .blocks = rank, .stream = stream});
    };
  }
  static std::size_t at(int rank) { return FusedRanks::at(rank); }

  Status capture(int r) {
    FakeCuda& cuda = ranks.gpus.cuda;
    require_ok(cuda.set_device(r));
    require_ok(cuda.begin_capture(ranks.streams[at(r)]));
    const Status status =
        run_fused(ranks.gpus.groups[at(r)].impl(), ranks.call(r, kRanks * ranks.rows_));
    captured[at(r)] = ranks.told[at(r)]->arrival;
    return status;
  }
  void end_capture(int r) {
    FakeCuda& cuda = ranks.gpus.cuda;
    graphs[at(r)] = take(cuda.end_capture(ranks.streams[at(r)]));
    execs[at(r)] = take(cuda.instantiate(graphs[at(r)]));
  }
  std::uint32_t word(int rank, int shard) const { return captured[at(rank)].flags[shard]; }
  // Nobody's words are set before all have met; each replay meets twice.
  Status meet_ranks(int rank) {
    if (meetings[at(rank)]++ % 2 == 0 && word(rank, 1 - rank) != 0) ++wrong;
    meeting.arrive_and_wait();
    return Status::ok();
  }
  Status multiply(int rank) {
    if (word(rank, 1 - rank) != captured[at(rank)].epoch || meetings[at(rank)] % 2 != 0) ++wrong;
    ++products;
    return Status::ok();
  }

  static constexpr int kRanks = 2;
  static constexpr char kMatmulKernel = 0;
  FusedRanks ranks{kRanks, 128};
  std::vector<Stream> others;
  std::array<Arrival, kRanks> captured;
  std::array<CudaGraph, kRanks> graphs{};
  std::array<CudaGraphExec, kRanks> execs{};
  std::array<int, kRanks> meetings{};
  std::barrier<> meeting{kRanks};
  std::atomic<int> wrong = 0, products = 0;
};

TEST_F(CapturedFused, EachReplayBringsFreshRowsAndSetsItsWordsAnew) {
  FakeCuda& cuda = ranks.gpus.cuda;
  on_all_ranks(kRanks, [&](int r) {
    require_ok(capture(r));
    // An eager call meanwhile is no part of it.
    FusedGather eager = ranks.call(r, kRanks * ranks.rows_);
    eager.gather.stream = others[at(r)];
    require_ok(run_fused(ranks.gpus.groups[at(r)].impl(), eager));
    EXPECT_NE(captured[at(r)].flags, ranks.told[at(r)]->arrival.flags);
    EXPECT_NE(captured[at(r)].failure, ranks.told[at(r)]->arrival.failure);
    EXPECT_LT(captured[at(r)].timeout_ns, ranks.told[at(r)]->arrival.timeout_ns);
    end_capture(r);
    require_ok(cuda.synchronize(others[at(r)]));
  });
  constexpr int kReplays = 3;
  for (int replay = 0; replay < kReplays; ++replay) {
    on_all_ranks(kRanks, [&](int r) {
      require_ok(cuda.set_device(r));
      std::memset(ranks.gathered(r), 0xff, kRanks * ranks.shard_bytes());
      std::memset(ranks.shard(r), 50 + 2 * replay + r, ranks.shard_bytes());
      require_ok(cuda.launch_graph(execs[at(r)], ranks.streams[at(r)]));
      EXPECT_EQ(*ranks.piece(r, 1 - r), static_cast<std::byte>(50 + 2 * replay + 1 - r));
    });
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(products, kRanks * kReplays);
  for (int r = 0; r < kRanks; ++r) {
    require_ok(cuda.destroy_graph_exec(execs[at(r)]));
    require_ok(cuda.destroy_graph(graphs[at(r)]));
  }
}

// The side stream waits for the caller's; the caller's for the ranks' meeting, and for the rest.
// One more mark, behind the gather, is for the communicator's next operation.
TEST_F(CapturedFused, TheMatmulIsBehindTheMeetingOfTheRanks) {
  FakeCuda& cuda = ranks.gpus.cuda;
  const int waits = cuda.calls("wait_event"), marks = cuda.calls("record_event");
  on_all_ranks(kRanks, [&](int r) { require_ok(capture(r)); });
  EXPECT_EQ(cuda.calls("wait_event") - waits, kRanks * 3);
  EXPECT_EQ(cuda.calls("record_event") - marks, kRanks * 4);
  for (int r = 0; r < kRanks; ++r) end_capture(r);
}

TEST_F(CapturedFused, TheMatmulsWaitsHaveTheTimeoutAtTheCapture) {
  for (auto& group : ranks.gpus.groups) require_ok(group.set_timeout(std::chrono::seconds(7)));
  on_all_ranks(kRanks, [&](int r) { require_ok(capture(r)); });
  for (int r = 0; r < kRanks; ++r) {
    EXPECT_EQ(std::chrono::nanoseconds(captured[at(r)].timeout_ns), std::chrono::seconds(7));
    end_capture(r);
  }
}

TEST(FusedGather, AMatmulThatCannotBeEnqueuedIsTheCallsAnswer) {
  FusedRanks ranks(2, 128);
  ranks.matmul_says = Status(StatusCode::kCuda, "no launch");
  on_all_ranks(2, [&](int r) { EXPECT_EQ(ranks.run(r, 30).message(), "no launch"); });
  ranks.matmul_says = Status::ok();
  for (const int r : {0, 1}) require_ok(ranks.run(r, 31));
  require_ok(ranks.gpus.cuda.synchronize(ranks.streams[0]));
  EXPECT_EQ(*ranks.piece(0, 1), std::byte{32});
}

// And of as many rows as the kernel's tiles that run at one time.
TEST(FusedGather, ChunksAreOfFourMegabytesAndTwoThousandRowsOrMore) {
  constexpr std::size_t kRowBytes = 1024;
  EXPECT_EQ(chunks_of_shard(0, kRowBytes, 8), 1);
  EXPECT_EQ(chunks_of_shard(8191, kRowBytes, 8), 1) << "less than 8 MiB";
  EXPECT_EQ(chunks_of_shard(8192, kRowBytes, 8), 2);
  EXPECT_EQ(chunks_of_shard(3 * 4096, kRowBytes, 8), 3);
  EXPECT_EQ(chunks_of_shard(100000, kRowBytes, 8), 4);
  EXPECT_EQ(chunks_of_shard(2048, 16 * kRowBytes, 8), 1) << "the rows of one sweep";
  EXPECT_EQ(chunks_of_shard(2049, 16 * kRowBytes, 8), 2) << "of two sweeps, half as high";
  EXPECT_EQ(chunks_of_shard(3, std::size_t{1} << 30, 8), 1);
  EXPECT_EQ(chunks_of_shard(100000, kRowBytes, 128), 1) << "as many words as the kernel knows";
}

}  // namespace
}  // namespace tutti::test
