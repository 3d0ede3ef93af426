// What surrounds a group: other work on its GPUs, memory that is freed and given out again, and how
// CUDA itself was set up.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "base/knobs.hpp"
#include "base/units.hpp"
#include "conformance/gpu/gpu_tests.hpp"
#include "conformance/gpu/occupy.hpp"
#include "support/cuda_graph.hpp"
#include "support/graph_lane.hpp"

namespace tutti::test {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatient{10000};
constexpr std::size_t kCount = 100000, kRoom = 512 * KiB;

Status wait_for_failure(Rank& rank) {
  for (int k = 0; k < 30000 && rank.group.status().is_ok(); ++k) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  return rank.group.status();
}

// --- another kernel on all multiprocessors ------------------------------------------------------

// The operation waits its turn on rank 0, and everybody else for rank 0.
void busy_gpu(Rank& rank) {
  const OwnedStream busy(rank.device);
  // Loads the kernel, which would wait for those that run.
  require(occupy_all_multiprocessors(busy.get(), milliseconds(0)), "the other kernel runs");
  busy.wait();
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Trial trial{.count = kCount, .seed = seed};
    const AllReduce call = lane.prepare(trial);
    if (rank.number() == 0) {
      require(occupy_all_multiprocessors(busy.get(), milliseconds(100)), "the other kernel runs");
    }
    require_ok(lane.run(call));
    lane.check(trial);
    busy.wait();
  }
}

// What leaves multiprocessors to another kernel is told to all ranks alike; one that was told
// otherwise is found.
void budgets_that_differ(Rank& rank) {
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  const Trial trial{.count = kCount, .algorithm = "two_shot"};
  AllReduce call = lane.prepare(trial);
  call.options.sm_budget = 8;
  require_ok(lane.run(call));
  lane.check(trial);
  if (rank.number() == 1) call.options.sm_budget = 4;
  require_failure(lane.run(call), StatusCode::kMismatch, {"all_reduce/two_shot", "#2", "rank 1"});
}

// The other kernel outlasts the deadline: an error that names rank 0. Rank 0's operation begins
// when all is over, and must leave the others' memory alone. On a GPU that all ranks share, only
// rank 0's stream is busy.
void gpu_busy_for_too_long(Rank& rank) {
  Lane lane(rank, BufferKind::kSymmetric, kRoom);
  const OwnedStream busy(rank.device);
  const Trial trial{.count = kCount, .algorithm = "two_shot"};
  AllReduce call = lane.prepare(trial);
  call.options.timeout = milliseconds(300);
  if (rank.number() == 0) {
    require(rank.shares_gpu() ? occupy_stream(call.stream, milliseconds(2000))
                              : occupy_all_multiprocessors(busy.get(), milliseconds(2000)),
            "the other kernel runs");
  }
  Bytes mine(kCount * sizeof(float)), later(mine.size());
  (void)lane.start(call);
  const Status status = rank.number() == 0 ? wait_for_failure(rank) : lane.finish();
  require(!status.is_ok(), "nobody waits for ever");
  if (rank.number() != 0) {
    require_failure(status, StatusCode::kTimeout, {"all_reduce/two_shot", "for rank 0"});
    rank.device.read(mine.data(), static_cast<const std::byte*>(call.output), mine.size());
  }
  busy.wait();
  if (rank.number() == 0) return (void)lane.finish();
  std::this_thread::sleep_for(milliseconds(2500));
  rank.device.read(later.data(), static_cast<const std::byte*>(call.output), later.size());
  require(mine == later, "a rank that woke up late wrote into this one's memory");
}

// --- memory under our feet ----------------------------------------------------------------------

// One rank's input and output in one piece of memory.
struct Place {
  std::byte* address;
  AllReduce call(Stream stream) const {
    return {.input = address,
            .output = address + kRoom,
            .count = kCount,
            .dtype = DataType::kInt32,
            .stream = stream};
  }
};

void fill(Rank& rank, const Place& place, std::int32_t value) {
  const std::vector<std::int32_t> values(kCount, value + rank.number());
  const std::vector<std::int32_t> poison(kCount, -1);
  const std::size_t bytes = kCount * sizeof(std::int32_t);
  rank.device.write(place.address, reinterpret_cast<const std::byte*>(values.data()), bytes);
  rank.device.write(place.address + kRoom, reinterpret_cast<const std::byte*>(poison.data()),
                    bytes);
}

void check(Rank& rank, const Place& place, std::int32_t value) {
  std::vector<std::int32_t> seen(kCount);
  rank.device.read(reinterpret_cast<std::byte*>(seen.data()), place.address + kRoom,
                   kCount * sizeof(std::int32_t));
  const std::int32_t ranks = rank.size();
  const std::int32_t expected = ranks * value + ranks * (ranks - 1) / 2;
  for (std::size_t i = 0; i < kCount; ++i) {
    require(seen[i] == expected, fmt::format("element {}: {}, not {}", i, seen[i], expected));
  }
}

// Frees and allocates until the address comes again. The pieces in between are freed afterwards.
std::byte* same_address_again(Rank& rank, std::byte* address, MemoryKind kind) {
  std::vector<std::byte*> others;
  rank.device.free(address);
  std::byte* again = nullptr;
  for (int k = 0; k < 50 && again != address; ++k) {
    if (again != nullptr) others.push_back(again);
    again = rank.device.allocate(2 * kRoom, kind);
  }
  for (std::byte* other : others) rank.device.free(other);
  return again;
}

// Freeing and allocating wait for the kernels of the context, which ranks that share a GPU may have
// in common: no rank starts one meanwhile.
std::byte* same_address_again_on_all(Rank& rank, std::byte* address, MemoryKind kind) {
  rank.meet();
  std::byte* const again = same_address_again(rank, address, kind);
  rank.meet();
  return again;
}

// Plain buffers: what an address holds now is what is reduced, eagerly and by a replay.
void plain_memory_given_out_again(Rank& rank, MemoryKind kind) {
  const OwnedStream stream(rank.device);
  Place place{rank.device.allocate(2 * kRoom, kind)};
  bool came_again = false;
  for (std::int32_t round = 1; round <= 10; ++round) {
    const CapturedGraph graph(*rank.device.cuda(), stream.get(), [&] {
      require_ok(all_reduce(rank.group, place.call(stream.get())));
    });
    for (int k = 0; k < 2; ++k) {
      fill(rank, place, 100 * round + k);
      require_ok(all_reduce(rank.group, place.call(stream.get())));
      stream.wait();
      check(rank, place, 100 * round + k);
      fill(rank, place, 1000 * round + k);
      graph.launch(stream.get());
      stream.wait();
      check(rank, place, 1000 * round + k);
    }
    std::byte* const again = same_address_again_on_all(rank, place.address, kind);
    came_again = came_again || again == place.address;
    place.address = again;
  }
  rank.device.free(place.address);
  require(came_again, "no address came again: this test has shown nothing");
}

// A registration that outlives its memory names itself; what is there now is never touched.
void registered_memory_given_out_again(Rank& rank, MemoryKind kind) {
  const OwnedStream stream(rank.device);
  Place place{rank.device.allocate(2 * kRoom, kind)};
  const SymmetricMemory registered = take(rank.group.register_memory(place.address, 2 * kRoom));
  fill(rank, place, 5);
  require_ok(all_reduce(rank.group, place.call(stream.get())));
  stream.wait();
  check(rank, place, 5);
  std::byte* const again = same_address_again(rank, place.address, kind);
  require(again == place.address, "the address did not come again: this test has shown nothing");
  fill(rank, place, 6);
  const Status status = all_reduce(rank.group, place.call(stream.get()));
  stream.wait();
  // A rank whose peers noticed first learns it from them.
  require(status.code() == StatusCode::kInvalidArgument || status.code() == StatusCode::kPeerFailed,
          fmt::format("a registration of memory that is gone was used: {}", status.to_string()));
  rank.device.free(again);
}

void cuda_malloc_given_out_again(Rank& rank) {
  plain_memory_given_out_again(rank, MemoryKind::kOrdinary);
}
void virtual_memory_remapped(Rank& rank) {
  plain_memory_given_out_again(rank, MemoryKind::kVirtual);
}
void registered_cuda_malloc_given_out_again(Rank& rank) {
  registered_memory_given_out_again(rank, MemoryKind::kOrdinary);
}
void registered_virtual_memory_remapped(Rank& rank) {
  registered_memory_given_out_again(rank, MemoryKind::kVirtual);
}

constexpr Scenario kSurroundings[] = {
    {"busy_gpu", 1, kPatient, busy_gpu},
    {"budgets_that_differ", 2, kPatient, budgets_that_differ},
    {"gpu_busy_for_too_long", 2, kPatient, gpu_busy_for_too_long},
    {"cuda_malloc_given_out_again", 1, kPatient, cuda_malloc_given_out_again},
    {"virtual_memory_remapped", 1, kPatient, virtual_memory_remapped},
    {"registered_cuda_malloc_given_out_again", 1, kPatient, registered_cuda_malloc_given_out_again},
    {"registered_virtual_memory_remapped", 1, kPatient, registered_virtual_memory_remapped},
};

}  // namespace

std::span<const Scenario> surroundings() { return kSurroundings; }

// --- how CUDA is set up -------------------------------------------------------------------------

namespace {

void eager_and_graph(Rank& rank) {
  GraphLane graph(rank, BufferKind::kSymmetric, {.count = 4099, .algorithm = "two_shot"});
  Lane direct(rank, BufferKind::kSymmetric, kRoom), staged(rank, BufferKind::kPlain, kRoom);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const std::string_view algorithm : {"", "one_shot", "two_shot"}) {
      direct.expect_right({.count = 999 * seed, .seed = seed, .algorithm = algorithm});
      staged.expect_right({.count = 1001 * seed, .seed = seed, .algorithm = algorithm});
    }
    graph.replay(seed);
  }
}

// Groups in a process where CUDA begins with this setting.
std::string with_setting(const char* name, const char* value, int ranks,
                         const std::vector<RankKind>& kinds) {
  ::setenv(name, value, 1);
  std::string wrong;
  for (const RankKind kind : kinds) {
    const GroupSpec spec{
        .backend = Backend::kCuda, .kind = kind, .ranks = ranks, .timeout = kPatient};
    wrong += run_group(spec, eager_and_graph);
  }
  return wrong;
}

const std::vector<RankKind> kBothKinds = {RankKind::kProcesses, RankKind::kThreads};

std::string lazy_loading(int ranks) {
  return with_setting("CUDA_MODULE_LOADING", "LAZY", ranks, kBothKinds);
}
// Ranks that are threads and share a GPU need a connection each: their kernels wait for each other.
std::string one_connection(int ranks) {
  const bool shared = Knobs::process().flag("TUTTI_SHARE_GPUS");
  return with_setting("CUDA_DEVICE_MAX_CONNECTIONS", "1", ranks,
                      shared ? std::vector{RankKind::kProcesses} : kBothKinds);
}
std::string blocking_launches(int ranks) {
  return with_setting("CUDA_LAUNCH_BLOCKING", "1", ranks, kBothKinds);
}

// One thread that drives all ranks cannot do so where each launch waits for its kernel: the first
// rank's would wait for ranks that are never started. An error says so; it is no hang.
void drive_with_blocking_launches(int ranks) {
  const GroupSpec spec{.backend = Backend::kCuda, .ranks = ranks, .timeout = milliseconds(1000)};
  auto groups = take(Communicator::create_in_process(ranks, options_for(spec)));
  prepare_all(groups);
  std::vector<std::unique_ptr<Device>> devices;
  std::deque<Rank> all;
  std::deque<Lane> lanes;
  std::vector<AllReduce> calls;
  for (Communicator& group : groups) {
    devices.push_back(make_device(Backend::kCuda, group.device()));
    all.push_back(Rank{group, *devices.back(), spec});
    lanes.emplace_back(all.back(), BufferKind::kPlain, 64 * KiB);
    calls.push_back(lanes.back().prepare({.count = 1000, .algorithm = "two_shot"}));
  }
  group_start();
  for (std::size_t r = 0; r < lanes.size(); ++r) (void)lanes[r].start(calls[r]);
  (void)group_end();
  require_failure(wait_for_failure(all.front()), StatusCode::kTimeout,
                  {"all_reduce/two_shot", "waited"});
}

std::string blocking_launches_of_one_thread(int ranks) {
  ::setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  ::setenv("TUTTI_NCCL_LIBRARY", "/nowhere", 1);
  try {
    drive_with_blocking_launches(ranks);
  } catch (const std::exception& failure) {
    return failure.what();
  }
  return {};
}

constexpr WholeTest kSettings[] = {
    {"lazy_loading", lazy_loading},
    {"one_connection", one_connection},
    {"blocking_launches", blocking_launches},
    {"blocking_launches_of_one_thread", blocking_launches_of_one_thread},
};

}  // namespace

std::span<const WholeTest> settings_of_cuda() { return kSettings; }

}  // namespace tutti::test
