// NCCL's kernels have no deadline of their own: ranks that stay away, come late or abort end as
// with every other algorithm, and streams, devices and other groups are as good as new.
#include <chrono>
#include <memory>
#include <thread>

#include "base/units.hpp"
#include "conformance/gpu/gpu_tests.hpp"
#include "support/cuda_graph.hpp"
#include "support/lane.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kPatient{10000}, kShort{2000}, kSetUp{60000};
constexpr std::size_t kRoom = 64 * KiB;
// NCCL adds in an order of its own.
constexpr Trial kTrial{.count = 1000, .inputs = InputKind::kExact, .algorithm = "nccl"};

// A lane that NCCL serves, after one operation; then `deadline` holds. Beside it another group of
// the same ranks, whose operations use the same stream.
class NcclLane {
 public:
  NcclLane(Rank& rank, milliseconds deadline)
      : rank_(rank),
        other_(take(rank.group.split(0, rank.number()))),
        lane_(rank, BufferKind::kPlain, kRoom),
        beside_(rank, *other_, BufferKind::kPlain, kRoom) {
    for (Communicator* group : {&rank.group, other_.get()}) {
      require_ok(group->set_timeout(kSetUp));
      require_ok(group->prepare_nccl());
    }
    lane_.expect_right(kTrial);
    beside_.expect_right(kTrial);  // whoever has passed this: every rank has passed the one before
    require_ok(rank.group.set_timeout(deadline));
  }

  Lane& lane() { return lane_; }
  Lane& beside() { return beside_; }
  AllReduce call() { return lane_.prepare(kTrial); }

  Status wait_for_failure() {
    const auto end = Clock::now() + milliseconds(30000);
    while (rank_.group.status().is_ok()) {
      require(Clock::now() < end, "this rank was not told of the failure");
      std::this_thread::sleep_for(milliseconds(1));
    }
    return rank_.group.status();
  }

  // What every rank finds once the group has failed: it stays so, and all else goes on, on the same
  // stream too.
  void expect_only_the_group_failed(const Status& failure) {
    require_failure(lane_.start(call()), failure.code());
    require_failure(rank_.group.prepare_nccl(), failure.code());
    AllReduce same_stream = beside_.prepare(kTrial);
    same_stream.stream = lane_.stream();
    require_ok(beside_.start(same_stream));
    rank_.device.wait(lane_.stream());
    beside_.check(kTrial);
    beside_.expect_right({.count = 3000, .algorithm = "two_shot"});
  }

 private:
  Rank& rank_;
  const std::unique_ptr<Communicator> other_;
  Lane lane_, beside_;
};

void nccl_rank_never_arrives(Rank& rank) {
  NcclLane nccl(rank, kShort);
  const auto start = Clock::now();
  const bool absent = rank.number() == 0;
  const Status status = absent ? nccl.wait_for_failure() : nccl.lane().run(nccl.call());
  const auto waited = Clock::now() - start;
  require_failure(status, StatusCode::kTimeout, {"all_reduce/nccl #2", "waited", "in NCCL"});
  require(waited >= kShort * 9 / 10, "the wait ended before its deadline");
  require(waited < kShort + milliseconds(3000), "the wait ended long after its deadline");
  // The rank that found it asked the others.
  const std::string text = status.to_string();
  const std::string found_here = "rank " + std::to_string(rank.number()) + " waited";
  if (text.find(found_here) != std::string::npos) {
    require_failure(status, StatusCode::kTimeout, {"rank 0 is at all_reduce/nccl #1", "has ended"});
  }
  nccl.expect_only_the_group_failed(status);
}

void nccl_rank_that_comes_late(Rank& rank) {
  NcclLane nccl(rank, kPatient);
  if (rank.number() == 0) std::this_thread::sleep_for(kShort);
  nccl.lane().expect_right(kTrial);
}

void nccl_deadline_of_one_call(Rank& rank) {
  NcclLane nccl(rank, kSetUp);
  const auto start = Clock::now();
  AllReduce call = nccl.call();
  call.options.timeout = milliseconds(500);
  const Status status = rank.number() == 0 ? nccl.wait_for_failure() : nccl.lane().run(call);
  require_failure(status, StatusCode::kTimeout, {"all_reduce/nccl #2"});
  require(Clock::now() - start < kPatient, "the call's deadline was not kept");
}

// An operation that waits for rank 0 is ahead on the same stream: what comes behind it is not late.
void nccl_behind_long_work(Rank& rank) {
  NcclLane nccl(rank, milliseconds(1000));
  const AllReduce call = nccl.call();
  AllReduce ahead = nccl.beside().prepare({.count = 1000, .algorithm = "two_shot"});
  ahead.stream = nccl.lane().stream();
  if (rank.number() == 0) std::this_thread::sleep_for(milliseconds(3000));
  require_ok(nccl.beside().start(ahead));
  require_ok(nccl.lane().run(call));
  nccl.lane().check(kTrial);
}

// More than there are events for, and nothing is waited for in between.
void nccl_many_under_way(Rank& rank) {
  NcclLane nccl(rank, kPatient);
  const AllReduce call = nccl.call();
  for (int k = 0; k < 400; ++k) require_ok(nccl.lane().start(call));
  require_ok(nccl.lane().finish());
  nccl.lane().check(kTrial);
}

void nccl_abort_from_another_thread(Rank& rank) {
  NcclLane nccl(rank, kSetUp);
  const AllReduce call = nccl.call();
  const auto start = Clock::now();
  Status status;
  if (rank.number() == 0) {
    status = nccl.wait_for_failure();
  } else {
    run_together([&] { status = nccl.lane().run(call); },
                 [&] {
                   std::this_thread::sleep_for(milliseconds(300));
                   if (rank.number() == 1) rank.group.abort("enough of it");
                 });
  }
  require_failure(status, StatusCode::kAborted, {"rank 1", "enough of it"});
  require(Clock::now() - start < milliseconds(3000), "the abort ended nothing");
  nccl.expect_only_the_group_failed(status);
}

// A replay is not watched, but it is aborted; and again, when the graph is replayed later.
void nccl_replay_is_aborted(Rank& rank) {
  NcclLane nccl(rank, kSetUp);
  const AllReduce call = nccl.call();
  CudaDriver& cuda = *rank.device.cuda();
  const CapturedGraph graph(cuda, nccl.lane().stream(),
                            [&] { require_ok(nccl.lane().start(call)); });
  graph.launch(nccl.lane().stream());
  require_ok(nccl.lane().finish());
  if (rank.number() != 0) graph.launch(nccl.lane().stream());
  std::this_thread::sleep_for(milliseconds(300));
  if (rank.number() == 1) rank.group.abort("enough of it");
  const Status status = nccl.wait_for_failure();
  require_failure(status, StatusCode::kAborted, {"enough of it"});
  require_failure(nccl.lane().finish(), StatusCode::kAborted);
  graph.launch(nccl.lane().stream());
  require_failure(nccl.lane().finish(), StatusCode::kAborted);
}

// The destructor's wait ends with the deadline.
void nccl_destroyed_in_an_operation(Rank& rank) {
  NcclLane nccl(rank, kPatient);
  auto third = take(rank.group.split(0, rank.number()));
  require_ok(third->set_timeout(kSetUp));
  Lane lane(rank, *third, BufferKind::kPlain, kRoom);
  lane.expect_right(kTrial);
  nccl.beside().expect_right(kTrial);
  require_ok(third->set_timeout(milliseconds(1000)));
  if (rank.number() != 0) require_ok(lane.start(lane.prepare(kTrial)));
  const auto start = Clock::now();
  third.reset();
  rank.device.wait(lane.stream());
  require(Clock::now() - start < milliseconds(8000), "the destructor takes too long");
  nccl.lane().expect_right(kTrial);
}

constexpr Scenario kFailures[] = {
    {"nccl_rank_never_arrives", 2, kPatient, nccl_rank_never_arrives},
    {"nccl_rank_that_comes_late", 2, kPatient, nccl_rank_that_comes_late},
    {"nccl_deadline_of_one_call", 2, kPatient, nccl_deadline_of_one_call},
    {"nccl_behind_long_work", 2, kPatient, nccl_behind_long_work},
    {"nccl_many_under_way", 2, kPatient, nccl_many_under_way},
    {"nccl_abort_from_another_thread", 2, kPatient, nccl_abort_from_another_thread},
    {"nccl_replay_is_aborted", 2, kPatient, nccl_replay_is_aborted},
    {"nccl_destroyed_in_an_operation", 2, kPatient, nccl_destroyed_in_an_operation},
};

}  // namespace

std::span<const Scenario> nccl_failures() { return kFailures; }

}  // namespace tutti::test
