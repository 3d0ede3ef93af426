// CUDA graphs: replays with fresh data, beside eager calls and beside each other, and what they
// hold when they are gone.
#include <chrono>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/units.hpp"
#include "conformance/gpu/gpu_tests.hpp"
#include "group/communicator_impl.hpp"
#include "support/graph_lane.hpp"

namespace tutti::test {
namespace {

constexpr std::chrono::milliseconds kPatient{10000};

Trial trial_of(std::size_t count, std::string_view algorithm) {
  return {.count = count, .algorithm = algorithm};
}

// Processes that share a GPU take turns on it, of milliseconds.
std::uint64_t replays(const Rank& rank, std::uint64_t many) {
  return rank.shares_gpu() ? many / 10 : many;
}

void thousand_replays(Rank& rank) {
  GraphLane direct(rank, BufferKind::kSymmetric, trial_of(4099, "two_shot"));
  GraphLane staged(rank, BufferKind::kPlain, trial_of(1000, "one_shot"));
  for (std::uint64_t seed = 1; seed <= replays(rank, 1000); ++seed) {
    direct.replay(seed);
    if (seed % 4 == 0) staged.replay(seed);
  }
}

// Replays come at moments that differ from rank to rank.
void replays_of_delayed_ranks(Rank& rank) {
  GraphLane graph(rank, BufferKind::kSymmetric, trial_of(20000, "one_shot"));
  std::mt19937_64 random(static_cast<std::uint64_t>(rank.number()));
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
    graph.replay(seed);
  }
}

void eager_calls_between_replays(Rank& rank) {
  GraphLane graph(rank, BufferKind::kSymmetric, trial_of(5000, "two_shot"));
  GraphLane staged(rank, BufferKind::kPlain, trial_of(30000, "two_shot"));
  Lane eager(rank, BufferKind::kPlain, 256 * KiB);
  for (std::uint64_t seed = 1; seed <= replays(rank, 200); ++seed) {
    graph.replay(seed);
    eager.expect_right({.count = 37 * seed, .seed = seed});
    staged.replay(seed);
  }
}

// Graphs of different sizes on streams of their own, all under way at once.
void graphs_interleaved(Rank& rank) {
  std::deque<GraphLane> graphs;
  graphs.emplace_back(rank, BufferKind::kSymmetric, trial_of(7, "one_shot"));
  graphs.emplace_back(rank, BufferKind::kSymmetric, trial_of(4096, "two_shot"));
  graphs.emplace_back(rank, BufferKind::kPlain, trial_of(3001, "one_shot"));
  graphs.emplace_back(rank, BufferKind::kPlain,
                      Trial{.dtype = DataType::kBfloat16, .count = 9000, .in_place = true});
  for (std::uint64_t seed = 1; seed <= replays(rank, 200); ++seed) {
    for (std::size_t k = 0; k < graphs.size(); ++k) {
      graphs[(k + seed) % graphs.size()].launch(seed);
    }
    for (GraphLane& graph : graphs) require_ok(graph.finish());
    for (GraphLane& graph : graphs) graph.check();
  }
}

// Several operations in one capture, each reading what the one before wrote.
void chain_in_one_graph(Rank& rank) {
  constexpr std::size_t kCount = 1000, kBytes = kCount * sizeof(std::int32_t);
  const SymmetricMemory memory = take(rank.group.allocate(2 * kBytes));
  auto* const first = static_cast<std::byte*>(memory.data());
  auto* const second = first + kBytes;
  const OwnedStream stream(rank.device);
  const AllReduce there{.input = first,
                        .output = second,
                        .count = kCount,
                        .dtype = DataType::kInt32,
                        .stream = stream.get()};
  AllReduce back = there;
  back.input = second;
  back.output = first;
  const CapturedGraph graph(*rank.device.cuda(), stream.get(), [&] {
    for (int k = 0; k < 5; ++k) {
      require_ok(all_reduce(rank.group, there));
      require_ok(all_reduce(rank.group, back));
    }
  });
  for (std::uint32_t round = 1; round <= 50; ++round) {
    std::vector<std::uint32_t> values(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      values[i] = round * static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(rank.number());
    }
    rank.device.write(first, reinterpret_cast<const std::byte*>(values.data()), kBytes);
    graph.launch(stream.get());
    stream.wait();
    require_ok(rank.group.status());
    rank.device.read(reinterpret_cast<std::byte*>(values.data()), first, kBytes);
    const auto ranks = static_cast<std::uint32_t>(rank.size());
    for (std::size_t i = 0; i < kCount; ++i) {
      std::uint32_t expected =
          ranks * round * static_cast<std::uint32_t>(i) + ranks * (ranks - 1) / 2;
      for (int k = 1; k < 10; ++k) expected *= ranks;
      require(values[i] == expected, fmt::format("element {} of round {}", i, round));
    }
  }
}

// Copies and kernels on two streams, of which a capture takes both: between eager calls, and where
// another capture begins before the first one has ended.
void graphs_of_copy_engines(Rank& rank) {
  constexpr std::string_view kRow = "two_shot_copy_engine";
  constexpr std::size_t kCount = 3 * MiB + 5;  // of floats: two chunks, and a rest
  GraphLane direct(rank, BufferKind::kSymmetric, trial_of(kCount, kRow));
  GraphLane staged(rank, BufferKind::kPlain, trial_of(300000, kRow));
  Lane eager(rank, BufferKind::kSymmetric, kCount * sizeof(float));
  direct.instantiate(rank);
  staged.instantiate(rank);
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    direct.replay(seed);
    eager.expect_right({.count = 159'999 * seed, .seed = seed, .algorithm = kRow});
    staged.replay(seed);
  }

  Lane first(rank, BufferKind::kSymmetric, kCount * sizeof(float));
  Lane second(rank, BufferKind::kSymmetric, kCount * sizeof(float));
  Trial trial = trial_of(kCount, kRow);
  const AllReduce outer_call = first.prepare(trial), inner_call = second.prepare(trial);
  CudaDriver& cuda = *rank.device.cuda();
  std::optional<CapturedGraph> inner;
  const CapturedGraph outer(cuda, first.stream(), [&] {
    require_ok(first.start(outer_call));
    inner.emplace(cuda, second.stream(), [&] { require_ok(second.start(inner_call)); });
    require_ok(first.start(outer_call));
  });
  outer.instantiate(rank);
  inner->instantiate(rank);
  for (trial.seed = 1; trial.seed <= 8; ++trial.seed) {
    (void)first.prepare(trial);
    (void)second.prepare(trial);
    outer.launch(first.stream());
    inner->launch(second.stream());
    for (Lane* lane : {&first, &second}) {
      require_ok(lane->finish());
      lane->check(trial);
    }
  }
}

constexpr std::size_t kTimes = 12, kScaled = 1001;

// Rank 0 gives a number, the others have one in memory. Of int64 no double holds it.
template <class T>
T multiplier(int rank, std::size_t time) {
  if (rank == 0) return 3;
  constexpr T kLarge = std::is_integral_v<T> ? static_cast<T>(std::int64_t{1} << 60 | 1) : T{1};
  return kLarge + static_cast<T>(10 * static_cast<std::size_t>(rank) + time);
}

template <class T>
T input_to_scale(int rank, std::size_t index) {
  return static_cast<T>(static_cast<std::size_t>(rank) + index % 7);
}

template <class T>
void check_scaled(const Rank& rank, const std::vector<T>& seen) {
  for (std::size_t k = 0; k < seen.size(); ++k) {
    std::conditional_t<std::is_integral_v<T>, std::uint64_t, T> expected = 0;
    for (int r = 0; r < rank.size(); ++r) {
      expected += static_cast<decltype(expected)>(multiplier<T>(r, k / kScaled)) *
                  static_cast<decltype(expected)>(input_to_scale<T>(r, k % kScaled));
    }
    require(seen[k] == static_cast<T>(expected),
            fmt::format("element {} of replay {}", k % kScaled, k / kScaled));
  }
}

constexpr std::size_t kBytesToScale = (kTimes * (kScaled + 1) + 2 * kScaled + 1) * 8;

// The multiplier is written in stream order, so its next value is enqueued before a replay, or an
// eager call, has read this one. `memory` has kBytesToScale.
template <class T>
void replay_with_multipliers(Rank& rank, const OwnedStream& stream, void* memory,
                             std::string_view algorithm) {
  CudaDriver& cuda = *rank.device.cuda();
  T *const input = static_cast<T*>(memory), *const output = input + kScaled;
  T *const scalar = output + kScaled, *const next = scalar + 1, *const seen = next + kTimes;
  const auto write = [&](T* to, std::size_t count, const auto& value) {
    std::vector<T> values;
    for (std::size_t k = 0; k < count; ++k) values.push_back(value(rank.number(), k));
    rank.device.write(reinterpret_cast<std::byte*>(to),
                      reinterpret_cast<const std::byte*>(values.data()), count * sizeof(T));
  };
  write(input, kScaled, input_to_scale<T>);
  write(next, kTimes, multiplier<T>);
  const AllReduce call{.input = input,
                       .output = output,
                       .count = kScaled,
                       .dtype = DataTypeOf<T>::value,
                       .op = rank.number() == 0 ? ReduceOp::pre_mul_sum(multiplier<T>(0, 0))
                                                : ReduceOp::pre_mul_sum_at(scalar),
                       .stream = stream.get(),
                       .options = {.algorithm = algorithm}};
  const CapturedGraph graph(cuda, stream.get(), [&] { require_ok(all_reduce(rank.group, call)); });
  graph.instantiate(rank);
  for (std::size_t k = 0; k < kTimes; ++k) {
    require_ok(cuda.copy_async(scalar, next + k, sizeof(T), stream.get()));
    if (k % 4 == 3) {
      require_ok(all_reduce(rank.group, call));
    } else {
      graph.launch(stream.get());
    }
    require_ok(cuda.copy_async(seen + k * kScaled, output, kScaled * sizeof(T), stream.get()));
  }
  stream.wait();
  require_ok(rank.group.status());
  std::vector<T> all(kTimes * kScaled);
  rank.device.read(reinterpret_cast<std::byte*>(all.data()),
                   reinterpret_cast<const std::byte*>(seen), all.size() * sizeof(T));
  check_scaled(rank, all);
}

void replays_read_multipliers(Rank& rank) {
  const SymmetricMemory shared = take(rank.group.allocate(kBytesToScale));
  const OwnedMemory plain(rank.device, kBytesToScale);
  const OwnedStream stream(rank.device);
  for (const std::string_view algorithm : {"one_shot", "two_shot", "two_shot_tma"}) {
    replay_with_multipliers<std::int64_t>(rank, stream, shared.data(), algorithm);
    replay_with_multipliers<float>(rank, stream, plain.get(), algorithm);
  }
}

// A thousand captures, one after the other: channels and mappings return. Every tenth registers its
// buffers, which other processes then have a mapping of.
void thousand_graphs(Rank& rank) {
  Lane lane(rank, BufferKind::kPlain, 64 * KiB);
  SymmetricHeap& heap = *rank.group.impl().heap();
  HeapUse before{};
  for (std::uint64_t k = 1; k <= 1000; ++k) {
    const bool late = k % 10 == 0;
    const Trial trial{.count = 1000 + k, .seed = k, .algorithm = late ? "two_shot" : ""};
    const AllReduce call = lane.prepare(trial);
    if (late) require_ok(rank.group.start_capture());
    const CapturedGraph graph(*rank.device.cuda(), lane.stream(),
                              [&] { require_ok(lane.start(call)); });
    if (late) require_ok(rank.group.finish_capture());
    graph.launch(lane.stream());
    require_ok(lane.finish());
    lane.check(trial);
    if (k == 100) {
      rank.meet();  // as below: what that takes stays in the pool
      before = heap.use();
    }
  }
  // A graph's end is noticed a little later, at the next collective moment.
  const std::size_t late = rank.spec.kind == RankKind::kProcesses ? 1 : 0;
  for (int attempt = 0; attempt < 100; ++attempt) {
    rank.meet();
    if (heap.use().open_mappings + late <= before.open_mappings) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  fail(fmt::format("{} mappings are open after 1000 graphs, {} were after 100",
                   heap.use().open_mappings, before.open_mappings));
}

// All of them live, and each is replayed. Not where threads share a GPU: the first launch of a
// graph may need memory of the device, for which it waits until the other rank's kernel has ended.
void many_living_graphs(Rank& rank) {
  if (rank.shares_gpu() && rank.spec.kind == RankKind::kThreads) return;
  constexpr std::size_t kGraphs = 400;
  Lane lane(rank, BufferKind::kPlain, 64 * KiB);
  const std::size_t bytes = rank.group.impl().heap()->use().allocated_bytes;
  Trial trial{.count = 3000, .algorithm = "two_shot"};
  const AllReduce call = lane.prepare(trial);
  std::deque<CapturedGraph> graphs;
  for (std::size_t k = 0; k < kGraphs; ++k) {
    graphs.emplace_back(*rank.device.cuda(), lane.stream(), [&] { require_ok(lane.start(call)); });
  }
  require(rank.group.impl().heap()->use().allocated_bytes == bytes, "graphs take memory");
  for (const CapturedGraph& graph : graphs) {
    ++trial.seed;
    (void)lane.prepare(trial);
    graph.launch(lane.stream());
    require_ok(lane.finish());
    lane.check(trial);
  }
}

// One capture on two streams, between which its operations alternate, each reading what the one
// before wrote: nothing but the communicator orders them.
void forked_capture(Rank& rank) {
  constexpr std::size_t kCount = 1000, kBytes = kCount * sizeof(std::int32_t);
  const SymmetricMemory memory = take(rank.group.allocate(2 * kBytes));
  auto* const at = static_cast<std::byte*>(memory.data());
  const OwnedStream one(rank.device), two(rank.device);
  CudaDriver& cuda = *rank.device.cuda();
  const CudaEvent event = take(cuda.create_event(false));
  const auto order = [&](Stream later, Stream earlier) {
    require_ok(cuda.record_event(event, earlier));
    require_ok(cuda.wait_event(later, event));
  };
  constexpr int kPairs = 20;
  const CapturedGraph graph(cuda, one.get(), [&] {
    order(two.get(), one.get());
    for (int k = 0; k < 2 * kPairs; ++k) {
      const bool there = k % 2 == 0;
      require_ok(all_reduce(rank.group, {.input = at + (there ? 0 : kBytes),
                                         .output = at + (there ? kBytes : 0),
                                         .count = kCount,
                                         .dtype = DataType::kInt32,
                                         .op = ReduceOp::max(),
                                         .stream = there ? one.get() : two.get(),
                                         .options = {.algorithm = "two_shot"}}));
    }
    order(one.get(), two.get());
  });
  require_ok(cuda.destroy_event(event));
  graph.instantiate(rank);
  for (std::int32_t round = 1; round <= 20; ++round) {
    std::vector<std::int32_t> values(kCount, 100 * round + rank.number());
    rank.device.write(at, reinterpret_cast<const std::byte*>(values.data()), kBytes);
    graph.launch(one.get());
    one.wait();
    require_ok(rank.group.status());
    rank.device.read(reinterpret_cast<std::byte*>(values.data()), at, kBytes);
    for (const std::int32_t value : values) {
      require(value == 100 * round + rank.size() - 1, fmt::format("{} in round {}", value, round));
    }
  }
}

// Makes a group, memory of all kinds and an operation, and lets go of all of it.
void live_beside_a_capture(Communicator& parent, Device& device) {
  constexpr std::size_t kBytes = 64 * KiB;
  const auto group = take(parent.split(0, parent.rank()));
  require_ok(group->prepare());
  {
    const SymmetricMemory memory = take(group->allocate(kBytes));
    const LocalMemory local = take(group->allocate_local(kBytes));
    const SymmetricMemory registered = take(group->register_memory(local.data(), kBytes));
    const OwnedStream stream(device);
    for (int k = 0; k < 10; ++k) {
      for (void* const at : {memory.data(), registered.data()}) {
        require_ok(all_reduce(*group, {.input = at,
                                       .output = at,
                                       .count = kBytes / sizeof(float),
                                       .stream = stream.get(),
                                       .options = {.algorithm = "two_shot"}}));
      }
    }
    stream.wait();
    require_ok(group->set_timeout(kPatient));
    require_ok(group->status());
  }
  // Long enough for the threads that look after groups to have looked.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
}

// CUDA breaks a capture in global mode if any thread makes a call that it forbids.
void captured_in_global_mode(Rank& rank) {
  Lane lane(rank, BufferKind::kSymmetric, 64 * KiB);
  Trial trial{.count = 3000, .algorithm = "two_shot"};
  const AllReduce call = lane.prepare(trial);
  const auto parent = take(rank.group.split(0, rank.number()));
  std::string wrong;
  const CapturedGraph graph(
      *rank.device.cuda(), lane.stream(),
      [&] {
        require_ok(lane.start(call));
        std::thread other([&] {
          try {
            require_ok(rank.device.cuda()->set_device(rank.group.device()));
            live_beside_a_capture(*parent, rank.device);
          } catch (const std::exception& failure) {
            wrong = failure.what();
          }
        });
        other.join();
        require_ok(lane.start(call));
      },
      CapturedGraph::Mode::kAnyThread);
  require(wrong.empty(), wrong);
  graph.instantiate(rank);
  for (trial.seed = 1; trial.seed <= 5; ++trial.seed) {
    (void)lane.prepare(trial);
    graph.launch(lane.stream());
    require_ok(lane.finish());
    lane.check(trial);
  }
}

// Plain buffers, registered once the capture is over: replays read and write them directly, since
// such an operation has no staging.
void registered_after_capture(Rank& rank) {
  require_ok(rank.group.start_capture());
  GraphLane first(rank, BufferKind::kPlain, trial_of(20000, "two_shot"));
  GraphLane second(rank, BufferKind::kPlain, trial_of(3000, "one_shot"));
  GraphLane in_place(rank, BufferKind::kPlain,
                     Trial{.count = 5000, .in_place = true, .algorithm = "two_shot"});
  require_ok(rank.group.finish_capture());
  Lane eager(rank, BufferKind::kPlain, 64 * KiB);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    first.replay(seed);
    second.replay(seed);
    eager.expect_right({.count = 100 * seed, .seed = seed});
    in_place.replay(seed);
  }
}

// Two graphs of the same plain buffers: the end of the first takes nothing from the second, and
// nothing from calls that are not captured.
void graphs_share_buffers(Rank& rank) {
  Lane lane(rank, BufferKind::kPlain, 256 * KiB);
  Trial trial = trial_of(20000, "two_shot");
  const AllReduce call = lane.prepare(trial);
  const auto capture = [&] {
    require_ok(rank.group.start_capture());
    auto graph = std::make_unique<CapturedGraph>(*rank.device.cuda(), lane.stream(),
                                                 [&] { require_ok(lane.start(call)); });
    require_ok(rank.group.finish_capture());
    return graph;
  };
  const auto replay = [&](const CapturedGraph& graph) {
    ++trial.seed;
    (void)lane.prepare(trial);
    graph.launch(lane.stream());
    require_ok(lane.finish());
    lane.check(trial);
  };
  auto first = capture();
  const auto second = capture();
  for (int k = 0; k < 20; ++k) {
    replay(*first);
    replay(*second);
  }
  first.reset();
  for (int k = 0; k < 20; ++k) {
    (void)take(rank.group.allocate(256));  // when what dead graphs held is given up
    replay(*second);
    ++trial.seed;
    lane.expect_right(trial);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

constexpr Scenario kGraphs[] = {
    {"thousand_replays", 1, kPatient, thousand_replays},
    {"replays_of_delayed_ranks", 2, kPatient, replays_of_delayed_ranks},
    {"eager_calls_between_replays", 1, kPatient, eager_calls_between_replays},
    {"graphs_interleaved", 1, kPatient, graphs_interleaved},
    {"chain_in_one_graph", 1, kPatient, chain_in_one_graph},
    {"replays_read_multipliers", 1, kPatient, replays_read_multipliers},
    {"graphs_of_copy_engines", 2, kPatient, graphs_of_copy_engines},
    {"thousand_graphs", 2, kPatient, thousand_graphs},
    {"many_living_graphs", 1, kPatient, many_living_graphs},
    {"forked_capture", 2, kPatient, forked_capture},
    {"captured_in_global_mode", 1, kPatient, captured_in_global_mode},
    {"registered_after_capture", 2, kPatient, registered_after_capture},
    {"graphs_share_buffers", 2, kPatient, graphs_share_buffers},
};

}  // namespace

std::span<const Scenario> graph_scenarios() { return kGraphs; }

}  // namespace tutti::test
