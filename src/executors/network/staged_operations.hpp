// Operations over a network whose buffers lie on a GPU, staged through pinned memory of the host.
// In the stream of each is a kernel of one block (device/requested_copies.hpp): it says that the
// stream has come to the operation, copies into and out of staging what the progress thread asks
// for, and ends with the operation. So data moves without a call of CUDA's, a stream waits for no
// address, and the wait has a deadline and ends if the group fails.
//
// Kernels of a group run one after the other (Streams::enter()), so all its operations share the
// staging, and the engine is given them in the order of their tickets.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "drivers/cuda.hpp"
#include "executors/network/copy_ring.hpp"
#include "executors/network/staged_lane.hpp"
#include "memory/rank_memory.hpp"
#include "tutti/status.hpp"

namespace tutti {

// What an enqueued kernel outwaits its operation by: the host tells it earlier, if it can.
inline constexpr std::chrono::minutes kKernelPatience{1};

class StagedOperations {
 public:
  struct Setup {
    CudaDriver& cuda;
    int device = 0;
    int ranks = 1;
    std::size_t staging_bytes = 0;  // ranks have it alike; raised to what they need at least
    std::chrono::nanoseconds timeout{0};
    CopyRule omitted = CopyRule::kNone;  // tests'
  };
  // Memory, and the kernel is loaded. Both may wait for kernels that run.
  static Result<std::unique_ptr<StagedOperations>> create(const Setup& setup);
  // After all kernels have ended, or were told to.
  ~StagedOperations();
  StagedOperations(const StagedOperations&) = delete;
  StagedOperations& operator=(const StagedOperations&) = delete;

  struct Work {
    std::vector<StagedTransfer> transfers;  // those of a pair of ranks in the order of the call
    std::chrono::nanoseconds timeout{0};
    bool has_own_timeout = false;
    std::string text;
  };
  CudaDriver& cuda() const { return cuda_; }
  int device() const { return device_; }

  // In stream order. Its ticket, from 1. One call at a time. The thread that calls advance() has to
  // be woken then.
  Result<std::uint64_t> enqueue(Work work, Stream stream);

  // From one thread. Gives the engine what has been copied. Whether anything was done.
  // kTimeout: the GPU has not copied.
  Result<bool> advance(NetworkEngine& engine, NetworkEngine::Clock::time_point now);

  // From any thread, as all that follows. Whether advance() has to be called again and again.
  bool is_waiting() const { return taken_ != finished_; }
  std::uint64_t ended_through() const;
  // Kernels end at once, without a result. Does not block.
  void cancel();
  // kTimeout: a kernel has waited in vain for this rank's thread.
  Status check() const;
  void set_timeout(std::chrono::nanoseconds timeout);
  // What the oldest operation waits for on this rank; empty: for nothing, or for other ranks.
  std::string position();

 private:
  struct Operation {
    std::uint64_t number = 0;
    std::vector<StagedLane> lanes;
    std::chrono::nanoseconds timeout{0};
    std::string text;
    bool begun = false;
  };

  StagedOperations(const Setup& setup, RankMemory memory);
  std::byte* staging() const;
  StagedSlots slots_of_all() const;
  StagedSlots slots_of_pair(int peer, bool sends) const;
  std::vector<StagedLane> lanes_of(std::vector<StagedTransfer> transfers) const;
  Status launch(RequestedCopies work, Stream stream);
  bool advance(Operation& operation, NetworkEngine& engine, NetworkEngine::Clock::time_point now);
  Operation* oldest();

  CudaDriver& cuda_;
  const int device_, ranks_;
  const std::size_t staging_bytes_;
  const CopyRule omitted_;
  RankMemory memory_;
  CopyRequests& page_;
  CopyRing copies_;
  std::uint64_t launched_ = 0;
  std::mutex mutex_;  // of the deque alone; its elements are the progress thread's
  std::deque<Operation> operations_;
  std::atomic<std::uint64_t> taken_ = 0, finished_ = 0;  // operations, by number
};

}  // namespace tutti
