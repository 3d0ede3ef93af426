// NCCL's symmetric kernels on windows over symmetric memory: results, graphs, memory that comes and
// goes, groups beside each other, and groups that fail with windows open.
#include <chrono>
#include <memory>
#include <thread>

#include "base/units.hpp"
#include "conformance/gpu/gpu_tests.hpp"
#include "group/communicator_impl.hpp"
#include "support/graph_lane.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kPatient{10000}, kShort{2000}, kSetUp{60000};

// NCCL adds in an order of its own.
Trial trial_of(std::size_t count, std::uint64_t seed = 1,
               std::string_view algorithm = "nccl_window") {
  return {.count = count, .inputs = InputKind::kExact, .seed = seed, .algorithm = algorithm};
}

void open_windows(Communicator& group) {
  require_ok(group.set_timeout(kSetUp));
  require_ok(group.impl().prepare_executor(kNcclExecutor, kNeedsNcclWindows));
  require(group.impl().topology().nccl, "no NCCL");
  const auto plan = group.plan("all_reduce", {.count = 1000, .algorithm = "nccl_window"});
  require_ok(plan.status());
}

void nccl_window_eager(Rank& rank) {
  Lane before(rank, BufferKind::kSymmetric, 4 * MiB);  // allocated before there are windows
  before.expect_right(trial_of(1000));                 // which this call opens
  Lane after(rank, BufferKind::kSymmetric, 40 * MiB);
  for (Lane* lane : {&before, &after}) {
    for (const std::size_t count : {1UL, 7UL, 1000UL, 65537UL, 262144UL, 1048579UL - 65536}) {
      for (const DataType dtype : {DataType::kFloat32, DataType::kBfloat16, DataType::kFloat16}) {
        Trial trial = trial_of(count, count);
        trial.dtype = dtype;
        lane->expect_right(trial);
        trial.in_place = true;
        lane->expect_right(trial);
        trial.offset = 8;
        lane->expect_right(trial);
        trial.offset = 3;  // not to 16 bytes
        require_failure(lane->run(lane->prepare(trial)), StatusCode::kUnsupported);
      }
    }
  }
  after.expect_right(trial_of(5'000'000));
}

// Both rows on one memory, each on a communicator of NCCL's.
void nccl_window_beside_nccl(Rank& rank) {
  Lane lane(rank, BufferKind::kSymmetric, 4 * MiB);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    for (const std::string_view algorithm : {"nccl", "nccl_window", "two_shot"}) {
      lane.expect_right(trial_of(1000 * seed, seed, algorithm));
    }
  }
}

// The first operation on the windows is a captured one.
void nccl_window_graphs(Rank& rank) {
  open_windows(rank.group);
  for (const std::size_t count : {500UL, 20000UL, 1000000UL}) {
    GraphLane graph(rank, BufferKind::kSymmetric, trial_of(count));
    Lane eager(rank, BufferKind::kSymmetric, 256 * KiB);
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      graph.replay(seed);
      if (seed % 5 == 0) eager.expect_right(trial_of(10 * seed, seed));
    }
  }
}

// Through the pool, and beyond what it keeps: those windows end, and the addresses may come back.
void nccl_window_memory_again(Rank& rank) {
  open_windows(rank.group);
  for (std::uint64_t k = 1; k <= 20; ++k) {
    Lane lane(rank, BufferKind::kSymmetric, k * MiB);
    lane.expect_right(trial_of(k * 100'000, k));
  }
  for (std::uint64_t k = 1; k <= 6; ++k) {
    Lane lane(rank, BufferKind::kSymmetric, (200 + 20 * k) * MiB);  // and as much for the output
    lane.expect_right(trial_of(100'000, k));
  }
  Lane small(rank, BufferKind::kSymmetric, 1 * MiB);
  small.expect_right(trial_of(100'000, 7));
  small.expect_right(trial_of(100'000, 8, "nccl"));
}

// Groups made of one another have windows, memory and communicators of their own.
void nccl_window_split_groups(Rank& rank) {
  Lane lane(rank, BufferKind::kSymmetric, 1 * MiB);
  lane.expect_right(trial_of(1000));
  const auto same = take(rank.group.split(0, rank.number()));
  Lane beside(rank, *same, BufferKind::kSymmetric, 1 * MiB);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    lane.expect_right(trial_of(1000 * seed, seed));
    beside.expect_right(trial_of(1000 * seed, seed + 100));
  }
  {
    const auto reversed = take(rank.group.split(0, -rank.number()));
    Lane short_lived(rank, *reversed, BufferKind::kSymmetric, 1 * MiB);
    short_lived.expect_right(trial_of(5000));
  }
  lane.expect_right(trial_of(5000, 2));
}

// With windows open and nothing under way on them: an abort, a poison of tutti's own kernels, and
// the destructor behind either. All else goes on.
void nccl_window_failed_groups(Rank& rank) {
  Lane lane(rank, BufferKind::kSymmetric, 1 * MiB);
  lane.expect_right(trial_of(1000));
  for (const bool by_abort : {true, false}) {
    auto doomed = take(rank.group.split(0, rank.number()));
    open_windows(*doomed);
    auto doomed_lane = std::make_unique<Lane>(rank, *doomed, BufferKind::kSymmetric, 1 * MiB);
    doomed_lane->expect_right(trial_of(1000, 2));
    lane.expect_right(trial_of(1000, 3));  // every rank has ended the one before
    require_ok(doomed->set_timeout(kShort));
    if (by_abort) {
      if (rank.number() == 0) doomed->abort("enough of it");
    } else if (rank.number() != 0) {
      const Trial trial = trial_of(1000, 4, "two_shot");
      require_failure(doomed_lane->run(doomed_lane->prepare(trial)), StatusCode::kTimeout);
    }
    const auto start = Clock::now();
    while (doomed->status().is_ok()) {
      require(Clock::now() - start < kSetUp, "this rank was not told of the failure");
      std::this_thread::sleep_for(milliseconds(1));
    }
    doomed_lane.reset();
    const auto end = Clock::now();
    doomed.reset();
    require(Clock::now() - end < kPatient, "the destructor takes too long");
    lane.expect_right(trial_of(3000, 5));
  }
}

constexpr Scenario kWindows[] = {
    {"nccl_window_eager", 2, kSetUp, nccl_window_eager},
    {"nccl_window_beside_nccl", 2, kSetUp, nccl_window_beside_nccl},
    {"nccl_window_graphs", 2, kSetUp, nccl_window_graphs},
    {"nccl_window_memory_again", 2, kSetUp, nccl_window_memory_again},
    {"nccl_window_split_groups", 2, kSetUp, nccl_window_split_groups},
    {"nccl_window_failed_groups", 2, kSetUp, nccl_window_failed_groups},
};

// ---- Waits, which take an NCCL whose symmetric kernels see an abort

class WaitingLane {
 public:
  explicit WaitingLane(Rank& rank) : rank_(rank), lane_(rank, BufferKind::kSymmetric, 1 * MiB) {
    lane_.expect_right(trial_of(1000));
    const auto meeting = take(rank.group.split(0, rank.number()));  // all have ended it
  }
  Status wait_for_failure() {
    const auto start = Clock::now();
    while (rank_.group.status().is_ok()) {
      require(Clock::now() - start < kSetUp, "this rank was not told of the failure");
      std::this_thread::sleep_for(milliseconds(1));
    }
    return rank_.group.status();
  }
  // Rank 0 stays away.
  Status run_without_one() {
    return rank_.number() == 0 ? wait_for_failure() : lane_.run(lane_.prepare(trial_of(1000, 2)));
  }
  Lane& lane() { return lane_; }

 private:
  Rank& rank_;
  Lane lane_;
};

void nccl_window_rank_never_arrives(Rank& rank) {
  WaitingLane waiting(rank);
  require_ok(rank.group.set_timeout(kShort));
  const Status status = waiting.run_without_one();
  require_failure(status, StatusCode::kTimeout, {"all_reduce/nccl_window #2", "in NCCL"});
}

void nccl_window_abort_ends_a_replay(Rank& rank) {
  WaitingLane waiting(rank);
  const AllReduce call = waiting.lane().prepare(trial_of(1000, 2));
  const Stream stream = waiting.lane().stream();
  const CapturedGraph graph(*rank.device.cuda(), stream,
                            [&] { require_ok(waiting.lane().start(call)); });
  if (rank.number() != 0) graph.launch(stream);
  std::this_thread::sleep_for(milliseconds(300));
  if (rank.number() == 1) rank.group.abort("enough of it");
  require_failure(waiting.wait_for_failure(), StatusCode::kAborted, {"enough of it"});
  require_failure(waiting.lane().finish(), StatusCode::kAborted);
}

constexpr Scenario kWaits[] = {
    {"nccl_window_rank_never_arrives", 2, kPatient, nccl_window_rank_never_arrives},
    {"nccl_window_abort_ends_a_replay", 2, kPatient, nccl_window_abort_ends_a_replay},
};

}  // namespace

std::span<const Scenario> nccl_windows() { return kWindows; }
std::span<const Scenario> nccl_window_waits() { return kWaits; }

}  // namespace tutti::test
