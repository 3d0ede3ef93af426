// Runs the kernels of staged operations (device/requested_copies.hpp) in the streams of a FakeCuda,
// each on a thread of its own: they begin and end in the order of their streams.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "base/try.hpp"
#include "device/requested_copies.hpp"
#include "fakes/fake_cuda.hpp"

namespace tutti::test {

template <class Memory = device::impl::SystemMemory, CopyRule omitted = CopyRule::kNone>
class CopyKernels {
 public:
  explicit CopyKernels(FakeCuda& cuda) : cuda_(cuda) {
    cuda.on_launch = [this](const CudaLaunch& launch) { return start(launch); };
  }

 private:
  struct Words {
    std::uint64_t begun = 0, ended = 0;
  };

  Status start(const CudaLaunch& launch) {
    const auto work = *static_cast<const RequestedCopies*>(launch.arguments[0]);
    Stream const stream = launch.stream;
    const std::lock_guard lock(mutex_);
    Words& words = words_.emplace_back();
    using Kind = CudaMemoryOperation::Kind;
    const CudaMemoryOperation begin{Kind::kWrite, &words.begun, 1};
    const CudaMemoryOperation end{Kind::kWaitAtLeast, &words.ended, 1};
    TUTTI_TRY(cuda_.memory_operations({&begin, 1}, stream));
    TUTTI_TRY(cuda_.memory_operations({&end, 1}, stream));
    threads_.emplace_back([this, work, stream, &words] {
      while (std::atomic_ref(words.begun).load() == 0) {
        (void)cuda_.stream_finished(stream);  // which lets it go on
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
      run_requested_copies<Memory, omitted>(work, device::Block());
      std::atomic_ref(words.ended).store(1);
    });
    return Status::ok();
  }

  FakeCuda& cuda_;
  std::mutex mutex_;
  std::deque<Words> words_;
  std::vector<std::jthread> threads_;  // joined first
};

}  // namespace tutti::test
