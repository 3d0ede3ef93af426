// Engines of all ranks over a fake network, and the operations that they run.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "executors/network/engine.hpp"
#include "fakes/fake_wire.hpp"

namespace tutti::test {

// The same operation on all its ranks.
struct Task {
  NetworkSchedule schedule = nullptr;
  std::size_t count = 1;  // of a piece, where there are pieces
  int root = 0;
  bool in_place = false;
  std::size_t chunk_bytes = 64;
  std::uint32_t signature = 7;
  std::optional<NetworkOperation::Pair> pair = {};
  OpKind op = OpKind::kSum;  // kPreMulSum: rank r multiplies by r + 2
};

class World {
 public:
  using Clock = NetworkEngine::Clock;
  using Duration = Clock::duration;

  struct Setup {
    int ranks = 2;
    FakeNetwork::Options network = {};
    Duration timeout = std::chrono::seconds(2);
    std::size_t most_scratch_bytes = NetworkEngine::kMostScratchBytes;
    NetworkRule omitted = NetworkRule::kNone;
  };
  explicit World(const Setup& setup);
  ~World();

  FakeNetwork& network() { return network_; }
  NetworkEngine& engine(int rank) { return *ranks_[static_cast<std::size_t>(rank)].engine; }

  // The next operation of this rank. Its ticket.
  std::uint64_t start(int rank, const Task& task);
  // Each rank of the task starts it.
  void start_all(const Task& task);

  // Until all ranks are idle, or have failed, or cannot go on. Before each moment `meanwhile` may
  // start something; it says whether there is more to come, and when.
  using Meanwhile = std::function<Clock::time_point()>;
  void run(const Meanwhile& meanwhile = {});
  // Calls progress() of all ranks, in some order, until none does anything.
  void settle();
  void run_for(Duration time);
  bool is_idle() const;

  const Status& failure(int rank) const { return ranks_[static_cast<std::size_t>(rank)].failure; }
  // What was wrong: failures, results, and payloads that were changed too early. Empty: nothing.
  std::string problem() const;
  std::size_t most_kept(int rank) const { return ranks_[static_cast<std::size_t>(rank)].most_kept; }

 private:
  struct Running {
    Task task;
    std::size_t number = 0;    // among the tasks of the rank in the task's domain
    std::uint64_t ticket = 0;  // 0: it has ended
    std::vector<std::int32_t> input, output;
  };
  struct Rank {
    std::unique_ptr<NetworkEngine> engine;
    std::vector<std::unique_ptr<Running>> running;  // buffers stay until the end
    std::size_t first_running = 0;
    std::vector<std::size_t> counted;  // tasks so far, by domain
    Status failure;
    std::size_t most_kept = 0;
  };
  bool step(int rank);
  Clock::time_point next_event() const;
  void check(int rank, Running& running);
  void note(std::string what);
  std::size_t& counter(Rank& rank, const Task& task) const;

  Setup setup_;
  FakeNetwork network_;
  std::mt19937_64 random_;
  std::vector<Rank> ranks_;
  std::string problem_;
};

}  // namespace tutti::test
