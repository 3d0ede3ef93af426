// Copy-engine operations whose ranks meet by stream memory operations, on fakes: what streams wait
// for ends, whatever becomes of the other ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "bootstrap/bootstrap.hpp"
#include "conformance/scenarios.hpp"
#include "support/children.hpp"
#include "support/fake_gpus.hpp"
#include "support/patience.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kPieceBytes = 1000;
constexpr milliseconds kShortTimeout{300}, kLongTimeout{60000};

// Ranks that have gathered once, which opens what streams meet by.
class Gathering {
 public:
  explicit Gathering(int ranks, std::shared_ptr<FakeCudaWorld> world = nullptr)
      : gpus(ranks, kLongTimeout, std::move(world)), memory(static_cast<std::size_t>(ranks)) {
    for (int r = 0; r < ranks; ++r) streams.push_back(gpus.make_stream(r));
    on_all_ranks(ranks, [&](int r) {
      memory[at(r)] = take(gpus.groups[at(r)].allocate((at(ranks) + 1) * kPieceBytes));
      require_ok(start(r, 1));
    });
    for (int r = 0; r < ranks; ++r) require_ok(gpus.cuda.synchronize(streams[at(r)]));
  }

  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  std::byte* input(int rank) { return static_cast<std::byte*>(memory[at(rank)].data()); }

  // Rank r's elements are seed + r.
  Status start(int rank, int seed, Stream stream = nullptr, std::size_t count = kPieceBytes) {
    if (stream == nullptr) stream = streams[at(rank)];
    const int value = seed + rank;
    const Status filled = gpus.cuda.set_async(input(rank), value, count, stream);
    if (!filled.is_ok()) return filled;
    return all_gather(gpus.groups[at(rank)], {.input = input(rank),
                                              .output = input(rank) + kPieceBytes,
                                              .count = count,
                                              .dtype = DataType::kUint8,
                                              .stream = stream,
                                              .options = {.sm_budget = 0}});
  }
  bool has_gathered(int rank, int seed) {
    bool right = true;
    for (int r = 0; r < gpus.size(); ++r) {
      const std::byte* const piece = input(rank) + (at(r) + 1) * kPieceBytes;
      const auto expected = static_cast<std::byte>(seed + r);
      right = right && std::all_of(piece, piece + kPieceBytes,
                                   [&](std::byte value) { return value == expected; });
    }
    return right;
  }
  // Of what waits already, too.
  void hurry() {
    for (Communicator& group : gpus.groups) require_ok(group.set_timeout(kShortTimeout));
  }
  bool idle(int rank) { return gpus.idle(streams[at(rank)]); }
  // What the rank says once its stream has drained.
  Status end_of(int rank) {
    const Status drained = gpus.cuda.synchronize(streams[at(rank)]);
    return drained.is_ok() ? gpus.groups[at(rank)].status() : drained;
  }

  FakeGpus gpus;
  std::vector<SymmetricMemory> memory;
  std::vector<Stream> streams;
};

TEST(StreamBarrier, MovesEverythingWithoutAKernel) {
  Gathering ranks(3);
  const int exchanged = static_cast<int>(ranks.gpus.groups[0].counters().exchanges);
  for (int seed = 10; seed < 15; ++seed) {
    for (int r = 0; r < 3; ++r) require_ok(ranks.start(r, seed));
    for (int r = 0; r < 3; ++r) {
      EXPECT_TRUE(ranks.end_of(r).is_ok());
      EXPECT_TRUE(ranks.has_gathered(r, seed)) << r;
    }
  }
  EXPECT_EQ(ranks.gpus.cuda.calls("launch"), 0);
  EXPECT_EQ(ranks.gpus.groups[0].counters().exchanges, exchanged) << "once it is open";
}

// The first operation, in a group of calls: opening asks the other ranks.
TEST(StreamBarrier, IsOpenedForAllRanksByOneThread) {
  FakeGpus gpus(2);
  std::vector<SymmetricMemory> memory(2);
  on_all_ranks(2, [&](int r) {
    const auto k = static_cast<std::size_t>(r);
    memory[k] = take(gpus.groups[k].allocate(3 * kPieceBytes));
  });
  group_start();
  for (std::size_t r = 0; r < 2; ++r) {
    auto* const input = static_cast<std::byte*>(memory[r].data());
    require_ok(all_gather(gpus.groups[r], {.input = input,
                                           .output = input + kPieceBytes,
                                           .count = kPieceBytes,
                                           .dtype = DataType::kUint8,
                                           .stream = gpus.make_stream(static_cast<int>(r)),
                                           .options = {.sm_budget = 0}}));
  }
  require_ok(group_end());
  EXPECT_EQ(gpus.cuda.calls("launch"), 0);
}

// A graph would repeat the values. The fake captures no kernel, and says so.
TEST(StreamBarrier, CapturesMeetByKernels) {
  Gathering ranks(2);
  const int before = ranks.gpus.cuda.calls("memory_operations");
  on_all_ranks(2, [&](int r) {
    const Stream stream = ranks.gpus.make_stream(r);
    require_ok(ranks.gpus.cuda.begin_capture(stream));
    EXPECT_THAT(ranks.start(r, 50, stream).message(), HasSubstr("cannot capture kernels"));
    (void)ranks.gpus.cuda.end_capture(stream);
  });
  EXPECT_EQ(ranks.gpus.cuda.calls("memory_operations"), before);
  for (const int r : {0, 1}) require_ok(ranks.start(r, 60));
  EXPECT_TRUE(ranks.end_of(0).is_ok() && ranks.has_gathered(0, 60));
}

TEST(StreamBarrier, WaitsForALateRank) {
  Gathering ranks(2);
  require_ok(ranks.start(0, 20));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(ranks.idle(0));
  require_ok(ranks.start(1, 20));
  EXPECT_TRUE(ranks.end_of(0).is_ok());
  EXPECT_TRUE(ranks.end_of(1).is_ok());
  EXPECT_TRUE(ranks.has_gathered(0, 20) && ranks.has_gathered(1, 20));
}

// The second operation, on another stream, comes after the first.
TEST(StreamBarrier, OperationsOfTwoStreamsAreInOrder) {
  Gathering ranks(2);
  const Stream other = ranks.gpus.make_stream(0);
  require_ok(ranks.start(0, 30));
  require_ok(all_gather(ranks.gpus.groups[0], {.input = ranks.input(0),
                                               .output = ranks.input(0) + kPieceBytes,
                                               .count = kPieceBytes,
                                               .dtype = DataType::kUint8,
                                               .stream = other,
                                               .options = {.sm_budget = 0}}));
  require_ok(ranks.start(1, 30));
  EXPECT_TRUE(ranks.end_of(0).is_ok());
  EXPECT_TRUE(ranks.has_gathered(0, 30));
  EXPECT_FALSE(ranks.gpus.idle(other));
  require_ok(ranks.start(1, 40));
  require_ok(ranks.gpus.cuda.synchronize(other));
  EXPECT_EQ(ranks.input(0)[2 * kPieceBytes], std::byte{41});
  EXPECT_TRUE(ranks.end_of(1).is_ok());
  require_ok(ranks.gpus.cuda.destroy_stream(other));
}

TEST(StreamBarrier, AMissingRankIsNamedAtTheDeadline) {
  Gathering ranks(3);
  for (const int r : {0, 1}) require_ok(ranks.start(r, 50));
  require_ok(ranks.start(0, 60));  // released as well
  ranks.hurry();
  for (const int r : {0, 1}) {
    const Status status = ranks.end_of(r);
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("all_gather/copy_engine #2"), HasSubstr("for rank 2"),
                      HasSubstr("expected flag 3, seen 1"), HasSubstr("timeout 300 ms")));
  }
  // Who comes later is not deceived by streams that were released.
  (void)ranks.start(2, 50);
  EXPECT_EQ(ranks.end_of(2).code(), StatusCode::kTimeout);
}

TEST(StreamBarrier, ACallsOwnDeadlineCounts) {
  Gathering ranks(2);
  require_ok(all_gather(ranks.gpus.groups[0],
                        {.input = ranks.input(0),
                         .output = ranks.input(0) + kPieceBytes,
                         .count = kPieceBytes,
                         .dtype = DataType::kUint8,
                         .stream = ranks.streams[0],
                         .options = {.timeout = milliseconds(100), .sm_budget = 0}}));
  EXPECT_THAT(ranks.end_of(0).message(), HasSubstr("timeout 100 ms"));
}

TEST(StreamBarrier, AnAbortReleasesEveryStream) {
  Gathering ranks(3);
  for (const int r : {0, 1}) require_ok(ranks.start(r, 50));
  ranks.gpus.groups[2].abort("enough");
  for (const int r : {0, 1}) {
    const Status status = ranks.end_of(r);
    EXPECT_EQ(status.code(), StatusCode::kAborted);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("aborted on rank 2: enough"),
                      HasSubstr("all_gather/copy_engine #2"), HasSubstr("for rank 2")));
  }
}

// With a full launch queue every call that enqueues blocks until the wait has ended, so nothing
// that ends it may come after such a call: neither at the deadline nor at an abort.
TEST(StreamBarrier, AFullLaunchQueueDoesNotKeepAFailureFromEndingTheWait) {
  for (const bool aborts : {false, true}) {
    std::atomic<bool> stuck = false;
    Gathering ranks(2);
    require_ok(ranks.start(0, 50));
    ranks.gpus.cuda.before_copy = [&stuck, &gpus = ranks.gpus, waiting = ranks.streams[0]](
                                      std::size_t bytes, Stream) {
      const Deadline patience(kPatience);
      while (bytes == sizeof(std::uint16_t) && !gpus.idle(waiting) && !stuck) {
        std::this_thread::sleep_for(milliseconds(1));
        stuck = patience.passed();
      }
    };
    if (aborts) ranks.gpus.groups[0].abort("enough");
    if (!aborts) ranks.hurry();
    const auto expected = aborts ? StatusCode::kAborted : StatusCode::kTimeout;
    EXPECT_EQ(ranks.end_of(0).code(), expected);
    EXPECT_FALSE(stuck);
  }
}

TEST(StreamBarrier, ARankThatHasLeftIsNotWaitedFor) {
  Gathering ranks(2);
  require_ok(ranks.start(0, 50));
  ranks.memory[1] = {};
  ranks.gpus.groups.pop_back();
  const Status status = ranks.end_of(0);
  EXPECT_EQ(status.code(), StatusCode::kPeerFailed);
  EXPECT_THAT(status.message(), HasSubstr("waits for rank 1, which left the group after"));
}

// Whichever value is the larger one.
TEST(StreamBarrier, AnotherOperationIsFound) {
  for (const std::size_t other : {kPieceBytes / 2, kPieceBytes / 4, kPieceBytes / 5}) {
    Gathering ranks(2);
    require_ok(ranks.start(0, 50));
    require_ok(ranks.start(1, 50, nullptr, other));
    for (const int r : {0, 1}) {
      const Status status = ranks.end_of(r);
      EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
      EXPECT_THAT(status.message(), HasSubstr("all_gather/copy_engine #2"));
    }
  }
}

// A rank that meets by kernels, in the same algorithm or in another one, is found as well.
TEST(StreamBarrier, AnOperationThatMeetsByKernelsIsFound) {
  for (const std::string_view algorithm : {"copy_engine", "push"}) {
    Gathering ranks(2);
    require_ok(ranks.start(0, 50));
    require_ok(all_gather(ranks.gpus.groups[1], {.input = ranks.input(1),
                                                 .output = ranks.input(1) + kPieceBytes,
                                                 .count = kPieceBytes,
                                                 .dtype = DataType::kUint8,
                                                 .stream = ranks.streams[1],
                                                 .options = {.algorithm = algorithm}}));
    const Status status = ranks.end_of(0);
    EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    // Either rank may be the one that finds it.
    EXPECT_THAT(status.message(), HasSubstr(" runs another operation than rank "));
  }
}

// A communicator that is destroyed in the middle of an operation waits for it, no longer than its
// deadline. Nothing stays registered.
TEST(StreamBarrier, EndsInTheMiddleOfAnOperation) {
  FakeCudaOpen open;
  {
    Gathering ranks(2);
    require_ok(ranks.start(1, 50));
    ranks.hurry();
    ranks.gpus.groups.pop_back();
    EXPECT_TRUE(ranks.idle(1));
    EXPECT_EQ(wait_for_failure(ranks.gpus.groups[0]).code(), StatusCode::kTimeout);
    EXPECT_GT(ranks.gpus.cuda.open().registered, 0u) << "while there are communicators";
    ranks.gpus.groups.clear();
    open = ranks.gpus.cuda.open();
  }
  EXPECT_EQ(open.registered, 0u);
}

// Where one rank's GPU has no such operations, all ranks meet by kernels.
TEST(StreamBarrier, IsAgreedOnByAllRanks) {
  auto world = std::make_shared<FakeCudaWorld>(2);
  world->devices[1].stream_memory_operations = false;
  Gathering ranks(2, world);
  EXPECT_EQ(ranks.gpus.cuda.calls("memory_operations"), 0);
  EXPECT_EQ(ranks.gpus.cuda.calls("launch"), 4);
  for (const int r : {0, 1}) require_ok(ranks.start(r, 50));
  EXPECT_EQ(ranks.gpus.cuda.calls("launch"), 8);
}

// Likewise where a write of a rank's stream does not arrive in a peer's page.
TEST(StreamBarrier, IsTriedByAllRanksFirst) {
  auto world = std::make_shared<FakeCudaWorld>(2);
  world->lost_writes = 1;
  Gathering ranks(2, world);
  EXPECT_EQ(ranks.gpus.cuda.calls("memory_operations"), 2) << "one trial of each rank";
  EXPECT_EQ(ranks.gpus.cuda.calls("launch"), 4);
}

// Ranks that are processes, with a fake GPU each. The second one says "ready", does nothing more
// until it hears of a failure, and says what that was.
class TwoProcesses {
 public:
  explicit TwoProcesses(milliseconds timeout)
      : id_(take(GroupId::local())),
        children_(2, [&](int rank, Wire& parent) { live(rank, timeout, parent); }) {
    EXPECT_TRUE(children_.wait_for_line(1, "ready", kPatience));
  }
  void signal(int number) { children_.signal(1, number); }
  // The last words of both.
  std::vector<std::string> ends() {
    std::vector<std::string> words;
    for (const auto& child : children_.finish(kPatience)) {
      words.push_back(child.lines.empty() ? "" : child.lines.back());
    }
    return words;
  }
  bool has_ended(int rank, const std::string& words) {
    return children_.wait_for_line(rank, words, kPatience);
  }

 private:
  void live(int rank, milliseconds timeout, Wire& parent) {
    FakeCuda cuda(std::make_shared<FakeCudaWorld>(2));
    Communicator group(take(CommunicatorImpl::create(
        take(join_group(id_, rank, 2, Deadline(kPatience))),
        {.backend = Backend::kCuda, .device = rank, .timeout = kLongTimeout}, {.cuda = &cuda})));
    const SymmetricMemory memory = take(group.allocate(3 * kPieceBytes));
    const Stream stream = take(cuda.create_stream(rank));
    const auto gather = [&] {
      auto* const input = static_cast<std::byte*>(memory.data());
      return all_gather(group, {.input = input,
                                .output = input + kPieceBytes,
                                .count = kPieceBytes,
                                .dtype = DataType::kUint8,
                                .stream = stream,
                                .options = {.sm_budget = 0}});
    };
    require_ok(gather());
    require_ok(cuda.synchronize(stream));
    require_ok(group.status());
    if (rank == 0) {
      require_ok(gather());
      require_ok(group.set_timeout(timeout));
    }
    parent.say(rank == 0 ? "waits" : "ready");
    if (rank == 0) require_ok(cuda.synchronize(stream));
    parent.say(std::string(to_string(wait_for_failure(group).code())));
  }

  const GroupId id_;
  Children children_;
};

TEST(StreamBarrierProcesses, ADeadRankIsNotWaitedFor) {
  TwoProcesses ranks(kLongTimeout);
  ranks.signal(SIGKILL);
  EXPECT_EQ(ranks.ends().front(), to_string(StatusCode::kPeerFailed));
}

// It hears of the deadline of the other one when it goes on.
TEST(StreamBarrierProcesses, AStoppedRankIsWaitedForUntilTheDeadline) {
  TwoProcesses ranks(kShortTimeout);
  ranks.signal(SIGSTOP);
  const std::string timeout(to_string(StatusCode::kTimeout));
  EXPECT_TRUE(ranks.has_ended(0, timeout));
  ranks.signal(SIGCONT);
  EXPECT_TRUE(ranks.has_ended(1, timeout));
  EXPECT_EQ(ranks.ends().back(), timeout);
}

}  // namespace
}  // namespace tutti::test
