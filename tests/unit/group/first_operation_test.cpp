// What a communicator has from its creation on, and what its first operation makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "group/communicator_impl.hpp"
#include "memory/symmetric_heap.hpp"
#include "support/bootstrap_shim.hpp"
#include "support/fake_gpus.hpp"
#include "support/group.hpp"
#include "tutti/tutti.hpp"
#include "unit/bootstrap/ranks.hpp"

namespace tutti::test {
namespace {

using testing::ForkedRank;
using ::testing::HasSubstr;

constexpr std::size_t kOfFirst = 256;

struct Unprepared {
  explicit Unprepared(int ranks) : gpus(ranks, kPatience, nullptr, false) {
    for (int r = 0; r < ranks; ++r) {
      streams.push_back(gpus.make_stream(r));
      buffers.push_back(take(gpus.cuda.allocate(r, kOfFirst * sizeof(float))));
    }
  }
  ~Unprepared() {
    for (const auto& buffer : buffers) EXPECT_TRUE(gpus.cuda.free(buffer).is_ok());
  }
  Call call(int rank) {
    const auto k = static_cast<std::size_t>(rank);
    Call call{.collective = Collective::kAllReduce};
    call.input = call.output = buffers[k];
    call.count = kOfFirst;
    call.stream = streams[k];
    return call;
  }
  Status reduce(int rank) {
    const auto k = static_cast<std::size_t>(rank);
    return all_reduce(
        gpus.groups[k],
        {.input = buffers[k], .output = buffers[k], .count = kOfFirst, .stream = streams[k]});
  }
  HeapUse use(int rank) { return gpus.groups[static_cast<std::size_t>(rank)].impl().heap()->use(); }

  FakeGpus gpus;
  std::vector<Stream> streams;
  std::vector<CudaAddress> buffers;
};

TEST(FirstOperation, MakesWhatOperationsNeedOnce) {
  Unprepared ranks(2);
  const Communicator::Counters created = ranks.gpus.groups[0].counters();
  EXPECT_EQ(created.allocations, 1u);
  EXPECT_EQ(ranks.use(0).allocated_bytes, 0u) << "a piece of what the process shares";
  on_all_ranks(2, [&](int r) { EXPECT_TRUE(ranks.reduce(r).is_ok()); });
  const Communicator::Counters first = ranks.gpus.groups[0].counters();
  EXPECT_EQ(first.allocations, created.allocations + 1);
  EXPECT_GT(ranks.use(0).allocated_bytes, 32 * MiB);
  for (int r = 0; r < 2; ++r) EXPECT_TRUE(ranks.reduce(r).is_ok()) << "nobody waits any more";
  on_all_ranks(2, [&](int r) {
    EXPECT_TRUE(ranks.gpus.groups[static_cast<std::size_t>(r)].prepare().is_ok());
  });
  EXPECT_EQ(ranks.gpus.groups[0].counters(), first);
}

TEST(FirstOperation, OfAGroupOfCallsIsOneThreadsToMake) {
  Unprepared ranks(2);
  EXPECT_TRUE(ranks.gpus.groups[0].impl().must_agree(ranks.call(0)));
  group_start();
  for (int r = 0; r < 2; ++r) require_ok(ranks.reduce(r));
  EXPECT_TRUE(group_end().is_ok());
  EXPECT_FALSE(ranks.gpus.groups[0].impl().must_agree(ranks.call(0)));
}

TEST(FirstOperation, IsRefusedInACaptureUntilItIsPrepared) {
  Unprepared ranks(2);
  ranks.gpus.cuda.on_captured_launch = [](const CudaLaunch&) {
    return [] { return Status::ok(); };
  };
  const auto capture = [&](int r) {
    const auto k = static_cast<std::size_t>(r);
    require_ok(ranks.gpus.cuda.begin_capture(ranks.streams[k]));
    Status captured = ranks.reduce(r);
    const CudaGraph graph = take(ranks.gpus.cuda.end_capture(ranks.streams[k]));
    require_ok(ranks.gpus.cuda.destroy_graph(graph));
    return captured;
  };
  on_all_ranks(2, [&](int r) {
    Communicator& group = ranks.gpus.groups[static_cast<std::size_t>(r)];
    const auto exchanges = group.counters().exchanges;
    const Status refused = capture(r);
    EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
    EXPECT_THAT(refused.message(), HasSubstr("prepare()"));
    EXPECT_EQ(group.counters().exchanges, exchanges) << "nobody was asked";
    EXPECT_TRUE(group.status().is_ok());
    require_ok(group.prepare());
    EXPECT_TRUE(capture(r).is_ok());
  });
}

TEST(FirstOperation, StartCapturePreparesToo) {
  Unprepared ranks(2);
  on_all_ranks(2, [&](int r) {
    Communicator& group = ranks.gpus.groups[static_cast<std::size_t>(r)];
    require_ok(group.start_capture());
    const auto exchanges = group.counters().exchanges;
    EXPECT_TRUE(ranks.reduce(r).is_ok());
    EXPECT_EQ(group.counters().exchanges, exchanges);
  });
}

// Whichever step fails, on one rank: every rank hears which one it was, and goes on.
TEST(FirstOperation, WithoutRoomOnOneRankIsRefusedOnEvery) {
  for (const char* const step : {"create_allocation", "map_allocation"}) {
    Unprepared ranks(2);
    ranks.gpus.cuda.fail(step, 0, true);
    std::array<Status, 2> refused;
    on_all_ranks(2, [&](int r) { refused[static_cast<std::size_t>(r)] = ranks.reduce(r); });
    EXPECT_TRUE(ranks.gpus.cuda.has_failed()) << step;
    for (const Status& status : refused) {
      EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.to_string();
      EXPECT_THAT(status.message(), HasSubstr("rank ")) << step;
    }
    on_all_ranks(2, [&](int r) { EXPECT_TRUE(ranks.reduce(r).is_ok()) << step; });
  }
}

// A few KiB each: what the driver gives is shared.
TEST(FirstOperation, GroupsBeforeItShareAnAllocation) {
  Unprepared ranks(2);
  const FakeCudaOpen one = ranks.gpus.cuda.open();
  std::array<std::vector<std::unique_ptr<Communicator>>, 2> parts;
  on_all_ranks(2, [&](int r) {
    const auto k = static_cast<std::size_t>(r);
    for (int i = 0; i < 3; ++i) parts[k].push_back(take(ranks.gpus.groups[k].split(0, r)));
  });
  EXPECT_EQ(ranks.gpus.cuda.open().mappings, one.mappings);
  EXPECT_EQ(ranks.gpus.cuda.open().handles, one.handles);
}

// The other end is the only other rank there is; a rank's own messages concern nobody.
TEST(FirstOperation, MayBeAMessage) {
  for (const int size : {2, 3}) {
    auto groups = take(Communicator::create_in_process(size, kOnHost));
    std::array<float, kOfFirst> sent, got{};
    sent.fill(7);
    on_all_ranks(2, [&](int r) {
      Communicator& group = groups[static_cast<std::size_t>(r)];
      std::array<float, kOfFirst> copy{};
      group_start();
      require_ok(send(group, sent, r));
      require_ok(recv(group, copy, r));
      require_ok(group_end());
      EXPECT_EQ(copy, sent);
      if (r == 0) require_ok(send(group, sent, 1));
      if (r == 1) require_ok(recv(group, got, 0));
    });
    EXPECT_EQ(got, sent) << size;
  }
}

// Each rank's threads come to the groups in an order of their own.
TEST(FirstOperation, OfSeveralGroupsMayBeMadeAtOnce) {
  constexpr int kGroups = 4;
  auto world = take(Communicator::create_in_process(2, kOnHost));
  on_all_ranks(2, [&](int r) {
    std::vector<std::unique_ptr<Communicator>> parts;
    for (int i = 0; i < kGroups; ++i) {
      parts.push_back(take(world[static_cast<std::size_t>(r)].split(0, r)));
    }
    std::vector<std::jthread> threads;
    for (int i = 0; i < kGroups; ++i) {
      Communicator& part = *parts[static_cast<std::size_t>(r == 0 ? i : kGroups - 1 - i)];
      threads.emplace_back([&part] {
        std::int32_t value = 1;
        const Status reduced = all_reduce(
            part, {.input = &value, .output = &value, .count = 1, .dtype = DataType::kInt32});
        EXPECT_TRUE(reduced.is_ok()) << reduced.to_string();
        EXPECT_EQ(value, 2);
      });
    }
    threads.clear();
  });
}

TEST(FirstOperation, NamesTheRankThatDoesNotCome) {
  auto groups = take(Communicator::create_in_process(2, kOnHost));
  require_ok(groups[0].set_timeout(std::chrono::milliseconds(50)));
  EXPECT_EQ(barrier(groups[0]).code(), StatusCode::kTimeout);
  EXPECT_EQ(groups[0].status().code(), StatusCode::kTimeout);
  EXPECT_THAT(groups[0].status().message(), HasSubstr("barrier/flags #1"));
  EXPECT_THAT(groups[0].status().message(), HasSubstr("did not hear from rank 1"));
}

// The exchange ends with the failure, which the group's handler may hear of later.
TEST(FirstOperation, ThatAnAbortEndsLeavesItsReason) {
  auto bootstraps = make_in_process_group(2);
  std::promise<void> asked;
  const auto late = asked.get_future().share();
  std::array<std::unique_ptr<CommunicatorImpl>, 2> groups;
  on_all_ranks(2, [&](int r) {
    const auto k = static_cast<std::size_t>(r);
    auto shim = std::make_unique<BootstrapShim>(std::move(bootstraps[k]), std::vector{0, 0});
    if (r == 0) shim->before_failure = [late] { late.wait(); };
    groups[k] = take(CommunicatorImpl::create(std::move(shim), kOnHost, Drivers{}));
  });
  groups[1]->abort("enough");
  const Status ended = groups[0]->execute({.collective = Collective::kBarrier});
  const Communicator::Failure known = groups[0]->describe_failure();
  asked.set_value();
  EXPECT_THAT(ended.message(), HasSubstr("enough"));
  EXPECT_EQ(known.code, StatusCode::kAborted);
  EXPECT_EQ(known.failed_rank, 1);
}

// In a suite, and so a process, of its own: settings are read once.
TEST(PrepareSetting, MakesTheMemoryWithTheGroup) {
  const UniqueId id = take(UniqueId::create());
  std::vector<ForkedRank> ranks;
  ranks.reserve(2);
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank](const ForkedRank::Say&) -> std::string {
      ::setenv("TUTTI_PREPARE", "1", 1);
      auto group = Communicator::create(id, rank, 2, kOnHost);
      if (!group.is_ok()) return group.status().to_string();
      const Communicator::Counters created = group->counters();
      std::int32_t value = 1;
      const Status reduced = all_reduce(
          *group, {.input = &value, .output = &value, .count = 1, .dtype = DataType::kInt32});
      if (!reduced.is_ok() || value != 2) return "it does not reduce: " + reduced.to_string();
      return group->counters() == created ? "" : "it made something";
    });
  }
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks[rank].complaint(), "") << rank;
}

}  // namespace
}  // namespace tutti::test
