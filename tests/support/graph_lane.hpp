// One captured operation with its buffers and its stream.
#pragma once

#include "support/cuda_graph.hpp"
#include "support/lane.hpp"

namespace tutti::test {

class GraphLane {
 public:
  // Captures the operation of `trial`. Collective.
  GraphLane(Rank& rank, BufferKind kind, const Trial& trial)
      : lane_(rank, kind,
              (trial.count + static_cast<std::size_t>(trial.offset)) * size_of(trial.dtype) + 1),
        trial_(trial),
        call_(lane_.prepare(trial)),
        graph_(*rank.device.cuda(), lane_.stream(), [this] { require_ok(lane_.start(call_)); }) {}

  const AllReduce& call() const { return call_; }
  // Of copies, before the first launch. Collective.
  void instantiate(const Rank& rank) { graph_.instantiate(rank); }

  // Fresh data and a replay, which may be under way when this returns.
  void launch(std::uint64_t seed) {
    trial_.seed = seed;
    (void)lane_.prepare(trial_);
    graph_.launch(lane_.stream());
  }
  Status finish() { return lane_.finish(); }
  void check() { lane_.check(trial_); }

  void replay(std::uint64_t seed) {
    launch(seed);
    require_ok(finish());
    check();
  }

 private:
  Lane lane_;
  Trial trial_;
  AllReduce call_;
  CapturedGraph graph_;
};

}  // namespace tutti::test
