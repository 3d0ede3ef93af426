// CUDA graphs: replays with fresh data, beside eager calls and beside each other, and what they
// hold when they are gone.
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <thread>

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

// A thousand captures, one after the other: channels and mappings return.
void thousand_graphs(Rank& rank) {
  Lane lane(rank, BufferKind::kPlain, 64 * KiB);
  SymmetricHeap& heap = *rank.group.impl().heap();
  HeapUse before{};
  for (std::uint64_t k = 1; k <= 1000; ++k) {
    const Trial trial{.count = 1000 + k, .seed = k};
    const AllReduce call = lane.prepare(trial);
    const bool late = k % 10 == 0;
    if (late) require_ok(rank.group.start_capture());
    const CapturedGraph graph(*rank.device.cuda(), lane.stream(),
                              [&] { require_ok(lane.start(call)); });
    if (late) require_ok(rank.group.finish_capture());
    graph.launch(lane.stream());
    require_ok(lane.finish());
    lane.check(trial);
    if (k == 100) before = heap.use();
  }
  // A graph's end is noticed a little later, at the next collective moment.
  for (int attempt = 0; attempt < 100; ++attempt) {
    (void)take(rank.group.allocate(256));
    if (heap.use().open_mappings <= before.open_mappings) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  fail(fmt::format("{} mappings are open after 1000 graphs, {} were after 100",
                   heap.use().open_mappings, before.open_mappings));
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
    {"graphs_of_copy_engines", 2, kPatient, graphs_of_copy_engines},
    {"thousand_graphs", 2, kPatient, thousand_graphs},
    {"registered_after_capture", 2, kPatient, registered_after_capture},
    {"graphs_share_buffers", 2, kPatient, graphs_share_buffers},
};

}  // namespace

std::span<const Scenario> graph_scenarios() { return kGraphs; }

}  // namespace tutti::test
