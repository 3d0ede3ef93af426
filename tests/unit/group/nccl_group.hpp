// Ranks on threads that have GPUs and NCCL, none of which exist: what waits for a rank is seen as
// it would be on a real machine.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "fakes/fake_cuda.hpp"
#include "fakes/fake_nccl.hpp"
#include "group/communicator_impl.hpp"
#include "support/check.hpp"
#include "support/patience.hpp"
#include "support/ranks.hpp"
#include "tutti/collectives.hpp"

namespace tutti::test {

using std::chrono::milliseconds;

class NcclGroup {
 public:
  enum class Nccl { kPrepared, kNotYet };

  // `timeout` holds from then on: making the group takes what it takes. `granularity`: of VMM
  // allocations; real GPUs have 2 MiB.
  explicit NcclGroup(int ranks, milliseconds timeout = kPatience, Nccl state = Nccl::kPrepared,
                     std::size_t granularity = 2 * MiB)
      : cuda(world_of(ranks, granularity)), values_(static_cast<std::size_t>(ranks)) {
    nccl.on_stream = [this](Stream stream, FakeNccl::Gate gate) {
      cuda.add_gate(stream, std::move(gate));
    };
    auto bootstraps = make_in_process_group(ranks);
    std::vector<std::unique_ptr<CommunicatorImpl>> made(bootstraps.size());
    on_all_ranks(ranks, [&](int r) {
      const auto k = static_cast<std::size_t>(r);
      made[k] = take(CommunicatorImpl::create(
          std::move(bootstraps[k]), {.backend = Backend::kCuda, .device = r, .timeout = kPatience},
          {.cuda = &cuda, .nccl = &nccl}));
      require_ok(made[k]->prepare_executor(kPeerExecutor));
    });
    for (int r = 0; r < ranks; ++r) {
      groups.emplace_back(std::move(made[static_cast<std::size_t>(r)]));
      streams.push_back(take(cuda.create_stream(r)));
    }
    if (state == Nccl::kPrepared) prepare();
    set_timeout(timeout);
  }

  int size() const { return static_cast<int>(values_.size()); }
  Communicator& group(int rank) { return groups[static_cast<std::size_t>(rank)]; }
  Stream stream(int rank) const { return streams[static_cast<std::size_t>(rank)]; }
  bool idle(int rank) { return take(cuda.stream_finished(stream(rank))); }

  AllReduce call(int rank, milliseconds timeout = milliseconds(0)) {
    float* const value = &values_[static_cast<std::size_t>(rank)];
    return {.input = value,
            .output = value,
            .count = 1,
            .stream = stream(rank),
            .options = {.algorithm = "nccl", .timeout = timeout}};
  }
  Status reduce(int rank, milliseconds timeout = milliseconds(0)) {
    return all_reduce(group(rank), call(rank, timeout));
  }

  // Until `done`, or `limit` has passed.
  template <class Done>
  static bool wait_until(Done&& done, milliseconds limit = kPatience) {
    const Deadline end(limit);
    while (!done()) {
      if (end.passed()) return false;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return true;
  }
  bool says(int rank, std::string_view words) {
    return group(rank).status().message().find(words) != std::string::npos;
  }
  // From now on, for what is under way as well. Before, ranks that call one behind the other have
  // all the time.
  void set_timeout(milliseconds timeout) {
    for (Communicator& group : groups) require_ok(group.set_timeout(timeout));
  }
  // The failure of a rank, once it has one and its stream has come to rest.
  Status failure_of(int rank, milliseconds limit = kPatience) {
    const bool failed =
        wait_until([&] { return !group(rank).status().is_ok() && idle(rank); }, limit);
    return failed ? group(rank).status() : Status::ok();
  }

  FakeCuda cuda;
  FakeNccl nccl;
  std::vector<Communicator> groups;
  std::vector<Stream> streams;

 private:
  static std::shared_ptr<FakeCudaWorld> world_of(int ranks, std::size_t granularity) {
    auto world = std::make_shared<FakeCudaWorld>(ranks);
    world->granularity = granularity;
    return world;
  }

  void prepare() {
    on_all_ranks(size(), [this](int rank) { require_ok(group(rank).prepare_nccl()); });
  }

  std::vector<float> values_;
};

}  // namespace tutti::test
