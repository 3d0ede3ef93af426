// Puts, gets and signals on GPUs: eager, in graphs, from a kernel of the user's own, and how their
// waits end.
#include "tutti/one_sided.hpp"

#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "conformance/gpu/gpu_tests.hpp"
#include "conformance/gpu/own_kernel.hpp"
#include "drivers/cuda.hpp"
#include "support/cuda_graph.hpp"
#include "tutti/tutti.hpp"

namespace tutti::test {
namespace {

constexpr std::chrono::milliseconds kPatient{10000};

int next_of(const Rank& rank) { return (rank.number() + 1) % rank.size(); }
int before(const Rank& rank) { return (rank.number() + rank.size() - 1) % rank.size(); }

std::vector<std::byte> pattern(std::size_t bytes, int rank, std::uint64_t round) {
  std::vector<std::byte> values(bytes);
  std::uint64_t state = round * 131 + static_cast<std::uint64_t>(rank) + 1;
  for (std::byte& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = std::byte(state >> 56);
  }
  return values;
}

void write(Rank& rank, void* to, const std::vector<std::byte>& values) {
  rank.device.write(static_cast<std::byte*>(to), values.data(), values.size());
}
void expect(Rank& rank, const void* at, const std::vector<std::byte>& values,
            std::string_view what) {
  std::vector<std::byte> seen(values.size());
  rank.device.read(seen.data(), const_cast<std::byte*>(static_cast<const std::byte*>(at)),
                   seen.size());
  require(seen == values, what);
}
void finish(Rank& rank, const OwnedStream& stream) {
  stream.wait();
  require_ok(rank.group.status());
}

// Sizes from one block to many, and all alignments that matter.
struct Shape {
  std::size_t bytes, source_offset, target_offset;
};
constexpr Shape kShapes[] = {{0, 0, 0},         {1, 3, 5},           {17, 0, 16},
                             {4096, 4, 8},      {32 * KiB, 0, 0},    {32 * KiB + 1, 16, 0},
                             {MiB + 12, 0, 16}, {3 * MiB + 5, 1, 0}, {16 * MiB, 0, 0}};
constexpr std::size_t kMost = 17 * MiB;

void puts_and_gets(Rank& rank) {
  const SymmetricMemory memory = take(rank.group.allocate(kMost));
  const OwnedMemory own(rank.device, kMost), fetched(rank.device, kMost);
  const OwnedStream stream(rank.device);
  auto* const at = static_cast<std::byte*>(memory.data());
  std::uint64_t round = 0;
  for (const Mover mover : {Mover::kAuto, Mover::kKernel, Mover::kCopyEngine}) {
    for (const Shape& shape : kShapes) {
      ++round;
      write(rank, own.get() + shape.source_offset, pattern(shape.bytes, rank.number(), round));
      require_ok(put_signal(rank.group,
                            {.from = own.get() + shape.source_offset,
                             .to = at + shape.target_offset,
                             .count = shape.bytes,
                             .dtype = DataType::kUint8,
                             .peer = next_of(rank),
                             .stream = stream.get(),
                             .mover = mover},
                            3));
      require_ok(
          wait_signal(rank.group, {.peer = before(rank), .channel = 3, .stream = stream.get()}));
      finish(rank, stream);
      expect(rank, at + shape.target_offset, pattern(shape.bytes, before(rank), round), "a put");
      require_ok(get(rank.group, {.from = at + shape.target_offset,
                                  .to = fetched.get() + shape.source_offset,
                                  .count = shape.bytes,
                                  .dtype = DataType::kUint8,
                                  .peer = rank.number(),
                                  .stream = stream.get(),
                                  .mover = mover}));
      // The next one's memory is complete once it says so.
      require_ok(signal(rank.group, {.peer = before(rank), .channel = 4, .stream = stream.get()}));
      require_ok(
          wait_signal(rank.group, {.peer = next_of(rank), .channel = 4, .stream = stream.get()}));
      finish(rank, stream);
      expect(rank, fetched.get() + shape.source_offset, pattern(shape.bytes, before(rank), round),
             "a get from oneself");
      require_ok(get(rank.group, {.from = at + shape.target_offset,
                                  .to = fetched.get() + shape.source_offset,
                                  .count = shape.bytes,
                                  .dtype = DataType::kUint8,
                                  .peer = next_of(rank),
                                  .stream = stream.get(),
                                  .mover = mover}));
      require_ok(barrier(rank.group, {.stream = stream.get()}));
      finish(rank, stream);
      expect(rank, fetched.get() + shape.source_offset, pattern(shape.bytes, rank.number(), round),
             "a get from the next one");
    }
  }
}

// A message around the ranks in a graph: each replay brings what lies there then. Between replays
// the same channels serve eager calls.
void signals_in_graphs(Rank& rank) {
  for (const std::size_t bytes : {std::size_t{5000}, 300 * KiB}) {
    const SymmetricMemory memory = take(rank.group.allocate(MiB));
    const OwnedMemory own(rank.device, MiB);
    const OwnedStream stream(rank.device);
    const auto exchange = [&] {
      require_ok(put_signal(rank.group,
                            {.from = own.get(),
                             .to = memory.data(),
                             .count = bytes,
                             .dtype = DataType::kUint8,
                             .peer = next_of(rank),
                             .stream = stream.get()},
                            0));
      require_ok(wait_signal(rank.group, {.peer = before(rank), .stream = stream.get()}));
    };
    const auto give_back = [&] {
      require_ok(signal(rank.group, {.peer = before(rank), .channel = 1, .stream = stream.get()}));
      require_ok(
          wait_signal(rank.group, {.peer = next_of(rank), .channel = 1, .stream = stream.get()}));
    };
    const CapturedGraph graph(*rank.device.cuda(), stream.get(), exchange);
    for (std::uint64_t round = 1; round <= 50; ++round) {
      write(rank, own.get(), pattern(bytes, rank.number(), round));
      if (round % 5 == 0) {
        exchange();
      } else {
        graph.launch(stream.get());
      }
      finish(rank, stream);
      expect(rank, memory.data(), pattern(bytes, before(rank), round), "a replay's message");
      give_back();
      finish(rank, stream);
    }
    rank.meet_before_freeing();
  }
}

// Users' kernels are loaded, and every rank knows that, before one of them waits.
device::Peers ready_for_kernels(Rank& rank, const SymmetricMemory& memory,
                                const OwnedStream& stream) {
  require_ok(rank.device.cuda()->set_device(rank.group.device()));
  require(load_own_kernel(), "the kernel is loaded");
  require_ok(barrier(rank.group, {.stream = stream.get()}));
  finish(rank, stream);
  return take(device_peers(rank.group, memory));
}

void kernels_of_users(Rank& rank) {
  const SymmetricMemory memory = take(rank.group.allocate(MiB));
  const OwnedMemory wrong(rank.device, sizeof(std::uint64_t));
  const OwnedStream stream(rank.device);
  const device::Peers peers = ready_for_kernels(rank, memory, stream);
  const std::uint64_t none = 0;
  rank.device.write(wrong.get(), reinterpret_cast<const std::byte*>(&none), sizeof none);
  for (const std::uint64_t words : {1, 1000, 20001}) {
    const Messages messages{words, 200, reinterpret_cast<std::uint64_t*>(wrong.get())};
    require(launch_own_kernel(peers, messages, stream.get()), "the launch");
    finish(rank, stream);
  }
  std::uint64_t count = 0;
  rank.device.read(reinterpret_cast<std::byte*>(&count), wrong.get(), sizeof count);
  require(count == 0, fmt::format("{} words of messages are wrong", count));
  // A stream's signal for a kernel that waits already.
  require(launch_own_wait(peers, before(rank), 5, stream.get()), "the launch");
  const OwnedStream other(rank.device);
  require_ok(signal(rank.group, {.peer = next_of(rank), .channel = 5, .stream = other.get()}));
  finish(rank, stream);
  finish(rank, other);
  rank.meet_before_freeing();
}

void expect_timeout(Rank& rank, int channel) {
  for (int k = 0; k < 500 && rank.group.status().is_ok(); ++k) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  require_failure(rank.group.status(), StatusCode::kTimeout,
                  {fmt::format("wait_signal on channel {}", channel), "rank 0 waited", "for rank 1",
                   "expected signal 2, seen 1"});
}

// Rank 1 signals once, where rank 0 waits for two.
void late_signals(Rank& rank) {
  const OwnedStream stream(rank.device);
  if (rank.number() == 1) require_ok(signal(rank.group, {.channel = 6, .stream = stream.get()}));
  if (rank.number() == 0) {
    require_ok(wait_signal(rank.group, {.peer = 1,
                                        .channel = 6,
                                        .times = 2,
                                        .stream = stream.get(),
                                        .timeout = std::chrono::milliseconds(1000)}));
  }
  stream.wait();
  expect_timeout(rank, 6);
}

void late_signals_of_kernels(Rank& rank) {
  const SymmetricMemory memory = take(rank.group.allocate(256));
  const OwnedStream stream(rank.device);
  const device::Peers peers = ready_for_kernels(rank, memory, stream);
  if (rank.number() == 1) require_ok(signal(rank.group, {.channel = 7, .stream = stream.get()}));
  if (rank.number() == 0) {
    require_ok(rank.group.set_timeout(std::chrono::milliseconds(1000)));
    require(launch_own_wait(peers, 1, 7, stream.get()), "the launch");
    require(launch_own_wait(peers, 1, 7, stream.get()), "the launch");
  }
  stream.wait();
  expect_timeout(rank, 7);
}

void aborted_waits(Rank& rank) {
  const OwnedStream stream(rank.device);
  if (rank.number() == 0) {
    require_ok(wait_signal(rank.group, {.peer = 1, .stream = stream.get()}));
  } else if (rank.number() == 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    rank.group.abort("enough");
  }
  const auto start = std::chrono::steady_clock::now();
  stream.wait();
  require(std::chrono::steady_clock::now() - start < kPatient / 2, "long before the deadline");
  for (int k = 0; k < 500 && rank.group.status().is_ok(); ++k) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  require_failure(rank.group.status(), StatusCode::kAborted, {"enough"});
}

// A rank waits on one stream while all of them compute together on another one.
void waits_beside_collectives(Rank& rank) {
  const OwnedStream waits(rank.device), computes(rank.device);
  const OwnedMemory own(rank.device, KiB);
  require_ok(wait_signal(rank.group, {.peer = before(rank), .channel = 8, .stream = waits.get()}));
  for (int k = 0; k < 20; ++k) {
    require_ok(all_reduce(
        rank.group,
        {.input = own.get(), .output = own.get(), .count = 64, .stream = computes.get()}));
  }
  finish(rank, computes);
  require_ok(signal(rank.group, {.peer = next_of(rank), .channel = 8, .stream = computes.get()}));
  finish(rank, waits);
  finish(rank, computes);
  rank.meet_before_freeing();
}

constexpr Scenario kOneSided[] = {
    {"puts_and_gets", 1, kPatient, puts_and_gets},
    {"signals_in_graphs", 1, kPatient, signals_in_graphs},
    {"kernels_of_users", 1, kPatient, kernels_of_users},
    {"late_signals", 2, kPatient, late_signals},
    {"late_signals_of_kernels", 2, kPatient, late_signals_of_kernels},
    {"aborted_waits", 2, kPatient, aborted_waits},
    {"waits_beside_collectives", 2, kPatient, waits_beside_collectives},
};

}  // namespace

std::span<const Scenario> one_sided() { return kOneSided; }

}  // namespace tutti::test
