// Copy-engine operations whose ranks meet by stream memory operations: what only a GPU can show of
// them. The rest is in unit_groups (StreamBarrier, BarrierWords).
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "conformance/gpu/gpu_tests.hpp"
#include "conformance/gpu/occupy.hpp"
#include "drivers/cuda.hpp"
#include "support/check.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatient{10000};
constexpr std::size_t kMost = 4 * MiB;  // of a rank's input

// A rank's buffers, and all_gathers of them.
class Gathering {
 public:
  explicit Gathering(Rank& rank)
      : rank_(rank),
        memory_(take(rank.group.allocate((ranks() + 1) * kMost))),
        stream_(rank.device) {
    require_ok(start(kMost));  // opens what streams meet by
    stream_.wait();
  }

  std::size_t ranks() const { return static_cast<std::size_t>(rank_.size()); }
  Stream stream() const { return stream_.get(); }
  AllGather call(std::size_t count, Stream on) const {
    auto* const input = static_cast<std::byte*>(memory_.data());
    return {.input = input,
            .output = input + kMost,
            .count = count,
            .dtype = DataType::kUint8,
            .stream = on,
            .options = {.sm_budget = 0}};
  }
  Status start(std::size_t count) { return all_gather(rank_.group, call(count, stream())); }
  // Rank r's bytes are seed + r.
  void fill(int seed, std::size_t count) {
    require_ok(
        rank_.device.cuda()->set_async(memory_.data(), seed + rank_.number(), count, stream()));
  }
  void check(int seed, std::size_t count) {
    std::vector<std::byte> seen(ranks() * count);
    const auto* const output = static_cast<const std::byte*>(memory_.data()) + kMost;
    rank_.device.read(seen.data(), output, seen.size());
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const auto expected = static_cast<std::byte>(seed + static_cast<int>(i / count));
      require(seen[i] == expected, fmt::format("byte {} of round {}", i, seed));
    }
  }
  Status finish() {
    stream_.wait();
    return rank_.group.status();
  }

 private:
  Rank& rank_;
  SymmetricMemory memory_;
  OwnedStream stream_;
};

// Keeps what this rank enqueues next from beginning.
void delay(const Gathering& gathering, milliseconds time) {
  require(occupy_stream(gathering.stream(), time), "the other kernel runs");
}

// Fresh inputs each time, and no synchronization in between. One rank's input comes late, another
// rank's each time: a first barrier that lets a rank pass shows in what that rank reads.
void fresh_inputs(Rank& rank) {
  Gathering gathering(rank);
  for (int seed = 1; seed <= 50; ++seed) {
    const bool checked = seed % 10 == 0;
    const std::size_t count = checked ? kMost : 1000 + static_cast<std::size_t>(seed);
    if ((seed + seed / 10) % rank.size() == rank.number()) delay(gathering, milliseconds(2));
    gathering.fill(seed, count);
    require_ok(gathering.start(count));
    if (!checked) continue;
    require_ok(gathering.finish());
    gathering.check(seed, count);
  }
}

// Only the root copies. The other ranks come to the second barrier at once, and overwrite their
// inputs after it: a barrier that lets them pass shows in the root's output.
void early_refill(Rank& rank) {
  Gathering gathering(rank);
  const AllGather call = gathering.call(kMost, gathering.stream());
  for (int seed = 1; seed <= 20; ++seed) {
    gathering.fill(seed, kMost);
    require_ok(gather(rank.group, {.input = call.input,
                                   .output = call.output,
                                   .count = call.count,
                                   .dtype = call.dtype,
                                   .root = 0,
                                   .stream = call.stream,
                                   .options = call.options}));
    if (rank.number() != 0) gathering.fill(seed + 100, kMost);
    require_ok(gathering.finish());
    if (rank.number() == 0) gathering.check(seed, kMost);
  }
}

void late_rank(Rank& rank) {
  Gathering gathering(rank);
  if (rank.number() == 0) delay(gathering, milliseconds(300));
  gathering.fill(7, kMost);
  require_ok(gathering.start(kMost));
  require_ok(gathering.finish());
  gathering.check(7, kMost);
}

// Released at the deadline, the operation after it as well.
void missing_rank(Rank& rank) {
  Gathering gathering(rank);
  const int missing = rank.size() - 1;
  if (rank.number() == missing) {
    while (rank.group.status().is_ok()) std::this_thread::sleep_for(milliseconds(1));
    return;
  }
  AllGather call = gathering.call(kMost, gathering.stream());
  call.options.timeout = milliseconds(300);
  require_ok(all_gather(rank.group, call));
  (void)all_gather(rank.group, call);
  require_failure(gathering.finish(), StatusCode::kTimeout,
                  {"all_gather/copy_engine", fmt::format("for rank {}", missing)});
}

void aborted(Rank& rank) {
  Gathering gathering(rank);
  if (rank.number() == 0) {
    std::this_thread::sleep_for(milliseconds(50));
    return rank.group.abort("enough");
  }
  (void)gathering.start(kMost);
  require_failure(gathering.finish(), StatusCode::kAborted, {"aborted on rank 0: enough"});
}

void two_streams(Rank& rank) {
  Gathering gathering(rank);
  const OwnedStream other(rank.device);
  for (int seed = 1; seed <= 10; ++seed) {
    gathering.fill(seed, kMost);
    require_ok(gathering.start(kMost));
    require_ok(all_gather(rank.group, gathering.call(kMost, other.get())));
    other.wait();
    require_ok(gathering.finish());
    gathering.check(seed, kMost);
    rank.meet();
  }
}

// --- next to a grid that has every SM -----------------------------------------------------------

struct Grid {
  const char* name;
  bool (*occupy)(Stream stream, milliseconds time);  // null: there is none
};
constexpr Grid kGrids[] = {{"no other grid", nullptr},
                           {"1024 threads on each SM", occupy_half_of_all_multiprocessors},
                           {"2048 threads on each SM", occupy_all_multiprocessors}};
constexpr milliseconds kOccupied{60};

struct TimedOperation {
  float us;          // from where the streams of all ranks have come to it until it has ended
  bool ended_first;  // before the other grid, if this rank started one
};

// The ranks meet before by a stream barrier, since allocating, as Rank::meet() does, waits for the
// grid.
TimedOperation time_next_to(const Grid& grid, Rank& rank, Gathering& gathering,
                            const AllGather& call, const std::array<CudaEvent, 2>& events) {
  CudaDriver& cuda = *rank.device.cuda();
  const OwnedStream busy(rank.device);
  rank.meet();
  const bool occupies = grid.occupy != nullptr && (rank.number() == 0 || !rank.shares_gpu());
  if (occupies) require(grid.occupy(busy.get(), kOccupied), "the other grid runs");
  std::this_thread::sleep_for(milliseconds(5));
  require_ok(gathering.start(0));
  require_ok(cuda.record_event(events[0], call.stream));
  require_ok(all_gather(rank.group, call));
  require_ok(cuda.record_event(events[1], call.stream));
  require_ok(gathering.finish());
  const bool ended_first = !occupies || !take(cuda.stream_finished(busy.get()));
  busy.wait();
  rank.meet();
  return {take(cuda.elapsed_us(events[0], events[1])), ended_first};
}

// Ranks meet by kernels, and by stream memory operations; without bytes they only meet.
void next_to_a_full_grid(Rank& rank) {
  // Processes take turns on a GPU, and threads that share one meet by kernels.
  if (rank.shares_gpu()) return;
  Gathering gathering(rank);
  CudaDriver& cuda = *rank.device.cuda();
  const std::array<CudaEvent, 2> events{take(cuda.create_event(true)),
                                        take(cuda.create_event(true))};
  for (const Grid& grid : kGrids) {  // loads their kernels, which would wait for those that run
    if (grid.occupy != nullptr) require(grid.occupy(gathering.stream(), milliseconds(0)), "runs");
  }
  require_ok(gathering.finish());
  for (const Grid& grid : kGrids) {
    for (const std::size_t count : {std::size_t{0}, kMost}) {
      for (const bool by_kernels : {true, false}) {
        AllGather call = gathering.call(count, gathering.stream());
        if (by_kernels) call.options = {.algorithm = "copy_engine"};
        const auto [us, ended_first] = time_next_to(grid, rank, gathering, call, events);
        fmt::print("   rank {}, {}, {} bytes: met by {}: {:.1f} us\n", rank.number(), grid.name,
                   count, by_kernels ? "kernels" : "stream memory operations", us);
        const bool only_streams = count == 0 && !by_kernels;
        require(!only_streams || us < 20000, fmt::format("streams waited {:.0f} us", us));
        require(!only_streams || ended_first, "the other grid ended before the operation");
      }
    }
  }
  for (CudaEvent const event : events) require_ok(cuda.destroy_event(event));
}

constexpr Scenario kStreamBarriers[] = {
    {"stream_barrier_fresh_inputs", 2, kPatient, fresh_inputs},
    {"stream_barrier_early_refill", 2, kPatient, early_refill},
    {"stream_barrier_late_rank", 2, kPatient, late_rank},
    {"stream_barrier_missing_rank", 2, kPatient, missing_rank},
    {"stream_barrier_aborted", 2, kPatient, aborted},
    {"stream_barrier_two_streams", 2, kPatient, two_streams},
    {"stream_barrier_next_to_a_full_grid", 2, kPatient, next_to_a_full_grid},
};

}  // namespace

std::span<const Scenario> stream_barriers() { return kStreamBarriers; }

}  // namespace tutti::test
