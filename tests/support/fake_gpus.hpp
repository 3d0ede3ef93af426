// Ranks on threads that have GPUs, none of which exist: bodies do nothing, streams are in order.
// Unless `prepared` says no, one thread may then issue operations of all ranks one by one.
#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "fakes/fake_cuda.hpp"
#include "group/communicator_impl.hpp"
#include "support/check.hpp"
#include "support/ranks.hpp"

namespace tutti::test {

class FakeGpus {
 public:
  explicit FakeGpus(int ranks, std::chrono::milliseconds timeout = {},
                    std::shared_ptr<FakeCudaWorld> world = nullptr, bool prepared = true)
      : cuda(world != nullptr ? world : std::make_shared<FakeCudaWorld>(ranks)) {
    cuda.on_launch = [](const CudaLaunch&) { return Status::ok(); };
    auto bootstraps = make_in_process_group(ranks);
    std::vector<std::unique_ptr<CommunicatorImpl>> made(bootstraps.size());
    on_all_ranks(ranks, [&](int r) {
      const auto k = static_cast<std::size_t>(r);
      made[k] = take(CommunicatorImpl::create(
          std::move(bootstraps[k]),
          {.backend = Backend::kCuda, .device = device_of(r), .timeout = timeout},
          {.cuda = &cuda}));
      if (prepared) require_ok(made[k]->prepare_executor(kPeerExecutor));
    });
    for (auto& impl : made) groups.emplace_back(std::move(impl));
  }
  int size() const { return static_cast<int>(groups.size()); }
  // In a world of fewer GPUs than ranks these share them.
  int device_of(int rank) { return rank % take(cuda.device_count()); }
  Stream make_stream(int rank) { return take(cuda.create_stream(device_of(rank))); }
  bool idle(Stream stream) { return take(cuda.stream_finished(stream)); }
  // Something on `stream` that ends when the gate is opened.
  FakeCuda::Gate occupy(Stream stream) {
    auto gate = std::make_shared<std::atomic<bool>>(false);
    cuda.add_gate(stream, gate);
    return gate;
  }

  FakeCuda cuda;
  std::vector<Communicator> groups;
};

}  // namespace tutti::test
