// The pipelined algorithms of all_gather_matmul on GPUs that do not exist: streams run what they
// were given in order, each when it can, and matmuls are the host's. Nothing waits between calls.
#include "unit/api/pipelined_gpus.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/all_gather_matmul.hpp"
#include "base/units.hpp"
#include "bootstrap/bootstrap.hpp"
#include "conformance/scenarios.hpp"
#include "executors/peer/copy_kernel.hpp"
#include "support/children.hpp"
#include "support/fake_gpus.hpp"
#include "support/patience.hpp"

namespace tutti::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<GpuPipeline> all_gpu_pipelines() {
  std::vector<GpuPipeline> all;
  for (const std::string_view algorithm :
       {"pipelined_shift", "pipelined_ring", "pipelined_tiles"}) {
    for (const std::string_view protocol : {"get", "put"}) {
      const auto turn = all.size();
      all.push_back({algorithm,
                     {.protocol = protocol,
                      .streams = 1 + static_cast<int>(turn) % 4,
                      .tiles = 3,
                      .inter_stream_order = turn % 3 == 1},
                     turn % 2 == 0 ? 13u : 24u,
                     turn % 3 != 0});
    }
  }
  return all;
}

// What a call may do once its pipeline is prepared.
std::vector<int> costs_of(PipelinedGpus& ranks) {
  std::vector<int> costs;
  for (const std::string_view method :
       {"allocate", "create_allocation", "map_allocation", "allocate_mapped_host", "register_host",
        "create_stream", "create_event", "synchronize", "synchronize_event", "launch"}) {
    costs.push_back(ranks.gpus.cuda.calls(method));
  }
  for (const Communicator& group : ranks.gpus.groups) {
    costs.push_back(static_cast<int>(group.counters().exchanges));
    costs.push_back(static_cast<int>(group.counters().allocations));
  }
  return costs;
}

// Each rank in turn is the last one to enqueue anything.
TEST(PipelinedGpus, FreshInputsWithoutAPause) {
  for (const int count : {2, 3}) {
    PipelinedGpus ranks(count);
    int last = 0;
    for (const GpuPipeline& kind : all_gpu_pipelines()) {
      ranks.prepare(kind);
      std::vector<GpuCalls> sides;
      for (int r = 0; r < count; ++r) sides.push_back(ranks.calls(r, kind));
      const std::vector<int> costs = costs_of(ranks);
      last = (last + 1) % count;
      for (int step = 1; step <= count; ++step) {
        const int rank = (last + step) % count;
        for (int call = 0; call < kPipelinedCalls; ++call) {
          const Stream stream = ranks.streams[PipelinedGpus::at(rank)];
          require_ok(ranks.run(rank, sides[PipelinedGpus::at(rank)].call(call, stream)));
        }
      }
      EXPECT_EQ(costs_of(ranks), costs) << text_of(kind);
      for (int r = 0; r < count; ++r) {
        require_ok(ranks.end_of(r));
        for (int call = 0; call < kPipelinedCalls; ++call) {
          EXPECT_EQ(sides[PipelinedGpus::at(r)].count_wrong(call), 0)
              << text_of(kind) << ", " << count << " ranks, rank " << r << ", call " << call;
        }
      }
    }
  }
}

TEST(PipelinedGpus, AKernelMovesTheRows) {
  PipelinedGpus ranks(3);
  std::atomic<int> launched = 0;
  FakeCuda& cuda = ranks.gpus.cuda;
  cuda.on_launch = [&](const CudaLaunch& launch) {
    EXPECT_EQ(launch.kernel, copy_kernel());
    EXPECT_LE(launch.blocks, 16);
    ++launched;
    const auto work = *static_cast<const CopyWork*>(launch.arguments[0]);
    return cuda.enqueue(launch.stream, [work] {
      for (int block = 0; block < 16; ++block) run_copy(work, device::Block(block, 16));
      return Status::ok();
    });
  };
  for (GpuPipeline kind : all_gpu_pipelines()) {
    kind.pipeline.mover = "kernel";
    ranks.prepare(kind);
    const int copies = cuda.calls("copy_async"), before = launched;
    const std::vector<GpuCalls> sides{ranks.calls(0, kind), ranks.calls(1, kind),
                                      ranks.calls(2, kind)};
    for (const int r : {1, 2, 0}) {
      const auto at = PipelinedGpus::at(r);
      require_ok(ranks.run(r, sides[at].call(1, ranks.streams[at])));
    }
    for (const int r : {0, 1, 2}) {
      require_ok(ranks.end_of(r));
      EXPECT_EQ(sides[PipelinedGpus::at(r)].count_wrong(1), 0) << text_of(kind);
    }
    EXPECT_GE(launched - before, 3 * 2) << text_of(kind);
    EXPECT_EQ(cuda.calls("copy_async"), copies) << text_of(kind);
  }
}

TEST(PipelinedGpus, ACallIsEnqueuedAndReturns) {
  PipelinedGpus ranks(2);
  ranks.prepare({});
  const GpuCalls side = ranks.calls(0, {});
  const int before = ranks.multiplied;
  require_ok(ranks.run(0, side.call(1, ranks.streams[0])));
  EXPECT_EQ(ranks.multiplied, before + 1) << "the own rows wait for nobody";
  EXPECT_FALSE(ranks.gpus.idle(ranks.streams[0]));
  require_ok(ranks.run(1, ranks.calls(1, {}).call(1, ranks.streams[1])));
  require_ok(ranks.end_of(0));
  EXPECT_EQ(side.count_wrong(1), 0);
}

TEST(PipelinedGpus, WhatIsRefusedHasEnqueuedNothing) {
  PipelinedGpus ranks(2);
  ranks.prepare({});
  const auto enqueued = [&] {
    return ranks.gpus.cuda.calls("memory_operations") + ranks.gpus.cuda.calls("copy_async") +
           ranks.gpus.cuda.calls("record_event") + ranks.gpus.cuda.calls("wait_event");
  };
  const int before = enqueued(), multiplied = ranks.multiplied;
  const GpuCalls side = ranks.calls(0, {});
  AllGatherMatmul call = side.call(1, ranks.streams[0]);
  std::vector<std::byte> host(KiB);
  void* const c = std::exchange(call.c, host.data());
  EXPECT_EQ(ranks.run(0, call).message(),
            "all_gather_matmul: matmul: c is ordinary host memory, and the product runs on a GPU");
  call.c = c;
  require_ok(ranks.gpus.cuda.begin_capture(ranks.streams[0]));
  const Status captured = ranks.run(0, call);
  EXPECT_EQ(captured.code(), StatusCode::kUnsupported);
  EXPECT_EQ(captured.message(),
            "all_gather_matmul/pipelined_shift: a captured constant cannot count calls: not in a "
            "stream capture");
  require_ok(ranks.gpus.cuda.destroy_graph(take(ranks.gpus.cuda.end_capture(ranks.streams[0]))));
  EXPECT_EQ(enqueued(), before);
  EXPECT_EQ(ranks.multiplied, multiplied);
  for (const int r : {0, 1}) {
    require_ok(ranks.run(r, ranks.calls(r, {}).call(1, ranks.streams[PipelinedGpus::at(r)])));
  }
  require_ok(ranks.end_of(0));
}

TEST(PipelinedGpus, AGpuWithoutStreamMemoryOperationsIsRefused) {
  auto world = std::make_shared<FakeCudaWorld>(2);
  world->lost_writes = 1;  // in the trial of what streams wait for
  FakeGpus others(2, kLongPatience, world);
  on_all_ranks(2, [&](int r) {
    MatmulEngine engine({.cuda = [&](std::string*) { return &others.cuda; },
                         .cublas_lt = "/no/library",
                         .own_kernels = true});
    const GpuCalls side(others.cuda, r, 2, {});
    Communicator& group = others.groups[PipelinedGpus::at(r)];
    const Status status = all_gather_matmul(group, side.call(0, others.make_stream(r)), engine);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr("no stream memory operations: "));
    require_ok(group.status());
  });
}

TEST(PipelinedGpus, AMissingRankIsNamedAtTheDeadline) {
  PipelinedGpus ranks(3);
  const GpuPipeline kind{.algorithm = "pipelined_ring"};
  ranks.prepare(kind);
  for (const int r : {0, 1}) {
    for (const int call : {1, 2}) {  // the second one is released as well
      const Stream stream = ranks.streams[PipelinedGpus::at(r)];
      require_ok(ranks.run(r, ranks.calls(r, kind).call(call, stream)));
    }
  }
  ranks.hurry();
  for (const int r : {0, 1}) {
    const Status status = ranks.end_of(r);
    EXPECT_EQ(status.code(), StatusCode::kTimeout) << status.to_string();
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("pipeline #2 of all_gather_matmul (m 13, n 16, k 8, row, 1 B), "
                                "bf16, pipelined_ring, get, 4 streams: rank "),
                      HasSubstr("timeout 300 ms")));
  }
  EXPECT_EQ(wait_for_failure(ranks.gpus.groups[2]).code(), StatusCode::kTimeout);
  EXPECT_EQ(ranks.run(2, ranks.calls(2, kind).call(1, ranks.streams[2])).code(),
            StatusCode::kTimeout);
}

// Rank 1 waits in one stream for the rank that is missing, while another one has gone on.
TEST(PipelinedGpus, EachStreamIsWatched) {
  PipelinedGpus ranks(3);
  ranks.prepare({});
  for (const int r : {0, 1}) {
    require_ok(ranks.run(r, ranks.calls(r, {}).call(1, ranks.streams[PipelinedGpus::at(r)])));
  }
  require_ok(ranks.gpus.groups[1].set_timeout(kLittlePatience));
  EXPECT_THAT(wait_for_failure(ranks.gpus.groups[1]).message(),
              AllOf(HasSubstr("rank 1 waited"), HasSubstr("for rank 2")));
  for (const int r : {0, 1}) EXPECT_EQ(ranks.end_of(r).code(), StatusCode::kTimeout);
}

TEST(PipelinedGpus, ACallsOwnDeadlineCounts) {
  PipelinedGpus ranks(2);
  ranks.prepare({});
  AllGatherMatmul call = ranks.calls(0, {}).call(1, ranks.streams[0]);
  call.timeout = milliseconds(100);
  require_ok(ranks.run(0, call));
  EXPECT_THAT(ranks.end_of(0).message(),
              AllOf(HasSubstr("for rank 1"), HasSubstr("timeout 100 ms")));
}

TEST(PipelinedGpus, AnAbortReleasesTheStreams) {
  PipelinedGpus ranks(2);
  ranks.prepare({.algorithm = "pipelined_tiles"});
  const GpuCalls side = ranks.calls(0, {.algorithm = "pipelined_tiles"});
  require_ok(ranks.run(0, side.call(1, ranks.streams[0])));
  ranks.gpus.groups[1].abort("enough");
  const Status status = ranks.end_of(0);
  EXPECT_EQ(status.code(), StatusCode::kAborted);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("aborted on rank 1: enough"),
                                      HasSubstr("pipeline #2"), HasSubstr("for rank 1")));
}

TEST(PipelinedGpus, ARankThatHasLeftIsNotWaitedFor) {
  PipelinedGpus ranks(2);
  ranks.prepare({});
  require_ok(ranks.run(0, ranks.calls(0, {}).call(1, ranks.streams[0])));
  ranks.gpus.groups.pop_back();
  const Status status = ranks.end_of(0);
  EXPECT_EQ(status.code(), StatusCode::kPeerFailed);
  EXPECT_THAT(status.message(), HasSubstr("waits for rank 1, which left the group after pipeline"));
}

// Of two pipelines that both ranks know, and of one that is new to rank 1.
TEST(PipelinedGpus, AnotherPipelineIsFound) {
  for (const std::size_t other : {24u, 30u}) {
    PipelinedGpus ranks(2);
    ranks.prepare({});
    ranks.prepare({.m = 24});
    on_all_ranks(2, [&](int r) {
      const GpuPipeline kind{.m = r == 0 ? 13 : other};
      (void)ranks.run(r, ranks.calls(r, kind).call(1, ranks.streams[PipelinedGpus::at(r)]));
      const Status status = ranks.end_of(r);
      EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    });
    // Whoever finds it first; where rank 1 did, rank 0 adds what it runs itself.
    EXPECT_THAT(ranks.end_of(0).message(),
                AllOf(HasSubstr("pipeline #3 of all_gather_matmul (m 13, n 16, k 8, row, 1 B), "
                                "bf16, pipelined_shift, get, 4 streams"),
                      HasSubstr(" runs another operation than rank ")));
  }
}

// The seventeenth description takes the place of the oldest one, whose streams must have ended.
TEST(PipelinedGpus, MemoryStaysAsLongAsStreamsUseIt) {
  PipelinedGpus ranks(2);
  for (std::size_t m = 1; m <= 16; ++m) ranks.prepare({.m = m});
  const FakeCuda::Gate busy = ranks.gpus.occupy(ranks.streams[0]);
  std::vector<GpuCalls> sides;
  for (const int r : {0, 1}) {
    sides.push_back(ranks.calls(r, {.m = 1}));
    const Stream stream = ranks.streams[PipelinedGpus::at(r)];
    require_ok(ranks.run(r, sides.back().call(1, stream)));
  }
  std::atomic<bool> returned = false;
  std::jthread opener([&] {
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_FALSE(returned) << "rank 0's stream still runs";
    busy->store(true);
  });
  on_all_ranks(2, [&](int r) {
    require_ok(
        ranks.run(r, ranks.calls(r, {.m = 17}).call(0, ranks.streams[PipelinedGpus::at(r)])));
    if (r == 0) returned = true;
    require_ok(ranks.end_of(r));
  });
  ranks.prepare({.m = 2});  // which was forgotten
  for (std::size_t m : {1u, 17u}) ranks.prepare({.m = m});
}

// Ranks that are destroyed in the middle of a call wait for it, no longer than the deadline.
TEST(PipelinedGpus, EndsInTheMiddleOfACall) {
  PipelinedGpus ranks(2);
  ranks.prepare({});
  require_ok(ranks.run(1, ranks.calls(1, {}).call(1, ranks.streams[1])));
  ranks.hurry();
  ranks.gpus.groups.pop_back();
  EXPECT_TRUE(ranks.gpus.idle(ranks.streams[1]));
  ranks.gpus.groups.clear();
  EXPECT_EQ(ranks.gpus.cuda.open().streams, 2u) << "the test's";
  EXPECT_EQ(ranks.gpus.cuda.open().events, 0u);
  EXPECT_EQ(ranks.gpus.cuda.open().mappings, 0u);
}

TEST(PipelinedGpus, PlansAndExplanations) {
  PipelinedGpus ranks(2);
  const AllGatherMatmul call = ranks.calls(0, {}).call(0, ranks.streams[0]);
  require_ok(ranks.gpus.cuda.set_device(0));
  const AllGatherMatmulPlan plan = take(tutti::plan(ranks.gpus.groups[0], call, ranks.engine));
  EXPECT_EQ(plan.algorithm, "pipelined_shift");
  EXPECT_EQ(plan.config, "pipelined_shift, get, 4 streams, own_matmul");
  EXPECT_EQ(plan.why, "the call names it; C has the same bits however the rows are divided");
}

// Rank 1 is a process that is killed in the middle of a call: rank 0's streams wait for it. It has
// enqueued its part of the call before that, or not.
void live_in_pipeline(const GroupId& id, int rank, bool both, Wire& parent) {
  FakeCuda cuda(std::make_shared<FakeCudaWorld>(2));
  Communicator group(take(CommunicatorImpl::create(
      take(join_group(id, rank, 2, Deadline(kPatience))),
      {.backend = Backend::kCuda, .device = rank, .timeout = kLongPatience}, {.cuda = &cuda})));
  std::atomic<int> multiplied = 0;
  MatmulEngine engine(host_products(cuda, multiplied));
  const Stream stream = take(cuda.create_stream(rank));
  const GpuCalls calls(cuda, rank, 2, {});
  require_ok(all_gather_matmul(group, calls.call(0, stream), engine));
  require_ok(cuda.synchronize(stream));
  // Its own part waits behind this, for ever.
  if (rank == 1) cuda.add_gate(stream, std::make_shared<std::atomic<bool>>(false));
  if (rank == 0 || both) require_ok(all_gather_matmul(group, calls.call(1, stream), engine));
  // The gate holds the answer of rank 1's stream, not its words: with both, they may have come.
  require(rank == 1 || both || !take(cuda.stream_finished(stream)), "rank 0 waits");
  parent.say(rank == 0 ? "waits" : "ready");
  if (rank == 1) std::this_thread::sleep_for(kPatience);
  require_ok(cuda.synchronize(stream));
  const Status status = wait_for_failure(group);
  parent.say(status.to_string());
}

TEST(PipelinedProcesses, ADeadRankIsNotWaitedFor) {
  for (const bool both : {false, true}) {
    const GroupId id = take(GroupId::local());
    Children children(2, [&](int rank, Wire& parent) { live_in_pipeline(id, rank, both, parent); });
    ASSERT_TRUE(children.wait_for_line(0, "waits", kPatience));
    ASSERT_TRUE(children.wait_for_line(1, "ready", kPatience));
    children.signal(1, SIGKILL);
    const auto& ended = children.finish(kPatience);
    ASSERT_FALSE(ended[0].lines.empty());
    EXPECT_THAT(ended[0].lines.back(), AllOf(HasSubstr("peer failed"), HasSubstr("rank 1")));
  }
}

}  // namespace
}  // namespace tutti::test
