// The barriers of one rank's streams (barrier_words.hpp): the pages of its group, what is enqueued,
// and the host's watch over what waits. Pipelines wait for single words of the same pages
// (stream_waits.hpp).
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/deadline.hpp"
#include "executors/copy_engine/barrier_words.hpp"
#include "executors/copy_engine/stream_waits.hpp"

namespace tutti {

class Bootstrap;
class SharedMemoryDriver;

class StreamBarrier {
 public:
  struct Place {
    Bootstrap& bootstrap;
    CudaDriver& cuda;
    int device;
    SharedMemoryDriver& shared_memory;
  };
  // Collective. kUnavailable on every rank, with the same text, where one rank cannot.
  static Result<std::unique_ptr<StreamBarrier>> open(const Place& place, Deadline deadline);
  ~StreamBarrier();
  StreamBarrier(const StreamBarrier&) = delete;
  StreamBarrier& operator=(const StreamBarrier&) = delete;

  // Enqueues a barrier of the operation `work`, in the order of the stream. Barriers of one rank
  // are enqueued in the order in which they run. `first`: operations ahead of it, with which it is
  // one batch. The device is current.
  Status enqueue(const KernelArgs& work, Stream stream,
                 std::vector<CudaMemoryOperation> first = {});
  // Waits for single words, in the same pages. What follows is of these, too.
  StreamWaits& waits() { return *waits_; }

  // Of the wait that a stream is in, if it cannot go on: another operation at a peer, a peer that
  // has left, or a deadline that has passed. `usual_ns`: that of operations without one of their
  // own. To be called again and again; from any thread, as what follows.
  std::optional<FailureRecord> look(std::uint64_t usual_ns, std::uint32_t notices);
  // The wait that release() ends, if a stream is in one.
  std::optional<FailureRecord> waiting();
  // The group has failed: tells the peers, and ends all waits. Again until the streams have
  // drained.
  void release();

  // Streams have not drained: the pages stay for ever.
  void leave_behind() { drained_ = false; }

 private:
  class Pages;  // of all ranks, registered with CUDA
  struct Pending {
    BarrierTurn turn;
    std::uint64_t sequence, timeout_ns;
    std::uint32_t signature;
  };
  using Clock = RunningClock;

  StreamBarrier(CudaDriver& cuda, int rank, std::unique_ptr<Pages> pages);
  Status try_out(const Place& place, Deadline deadline);
  static Status try_words(const Place& place, const Pages& pages);
  BarrierPage& own() const;
  std::optional<FailureRecord> look_at_barriers(std::uint64_t usual_ns, std::uint32_t notices);
  std::optional<FailureRecord> waiting_in_barrier();
  const Pending* current();
  FailureRecord record_of(const Pending& pending, const BarrierView& view, FailureReason reason,
                          std::uint32_t there = 0) const;

  CudaDriver& cuda_;
  const int rank_;
  std::unique_ptr<Pages> pages_;
  std::unique_ptr<StreamWaits> waits_;
  bool drained_ = true;

  std::mutex mutex_;  // not held while something is enqueued, which may block
  BarrierTurn last_;
  bool released_ = false;
  std::deque<Pending> pending_;   // enqueued, and not known to have ended
  std::uint64_t waiting_in_ = 0;  // the number of the barrier that a stream was in at the last look
  Clock::time_point since_;
  int left_ = -1;  // for whom it waited then, although that rank had left
};

}  // namespace tutti
