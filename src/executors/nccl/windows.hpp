// Memory that NCCL's symmetric kernels (rows `nccl_window`) or its copy engines (rows
// `nccl_copy_engine`) may run on. NCCL takes them wherever both buffers lie in windows, and a call
// cannot opt out: so windows are on a communicator of NCCL's that nothing else runs on, one for
// each of the two, and the rows `nccl` stay what they were, on the same memory.
//
// Windows are whole allocations of the heap's own: they exist on every rank for the same time, and
// come and go in the same order, by collective calls. A user's memory may go on one rank alone, at
// any time; a window that is left over it would send what is next at this address astray.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/bootstrap.hpp"
#include "executors/nccl/session.hpp"
#include "memory/symmetric_heap.hpp"

namespace tutti {

class NcclWindows {
 public:
  NcclWindows(NcclMover mover, NcclDriver* nccl, CudaDriver* cuda)
      : mover_(mover), nccl_(nccl), session_(nccl, cuda) {}

  // Who makes windows together. What fails in NCCL is agreed on, and leaves the ranks in step; a
  // status that is not ok says that they are not.
  struct Group {
    Bootstrap& bootstrap;
    std::chrono::milliseconds timeout;
    NcclDriver::GiveUp give_up;
  };
  // Collective, once: NCCL's communicator, and a window for all that is held.
  Status open(const Group& group);
  // Collective: takes a segment that was allocated, and makes it a window where they are open.
  Status hold(const SymmetricSegment& segment, const Group& group);
  // Before it is unmapped.
  void let_go(const std::byte* local);

  bool settled() const { return session_.is_open() || given_up(); }
  bool are_open() const { return session_.is_open() && !given_up(); }
  // Why there are none and will be none; the same on every rank. From any thread.
  std::string_view why_none() const;
  // Aligned to 16 bytes: with others, of types of 1 and 2 bytes, NCCL 2.28.3's symmetric kernels
  // leave elements wrong (every fourth of fp16 one element off, with 2 and with 3 H200s).
  static bool can_hold(const SymmetricSegment* segment, const void* buffer) {
    return segment != nullptr && segment->capacity > 0 &&
           reinterpret_cast<std::uintptr_t>(buffer) % 16 == 0;
  }

  NcclSession& session() { return session_; }
  // From any thread, as the session's own. Where a registration has not come back, an abort it is.
  void end(NcclSession::How how);
  bool wait_ended(Deadline deadline);

 private:
  struct Block {
    std::byte* local;
    std::size_t bytes;
    bool registered = false;
  };
  Status register_blocks(const Group& group, Deadline deadline);
  // Exchanges how a step went on each rank. Where it failed on one there are no windows from then
  // on, and the answer is false.
  Result<bool> all_did(const Group& group, const Status& mine);

  const NcclMover mover_;
  NcclDriver* const nccl_;
  NcclSession session_;
  std::vector<Block> blocks_;  // in the order of their allocation, which all ranks share
  bool given_up() const { return given_up_.load(std::memory_order_acquire); }

  std::string why_none_;  // written once, before given_up_
  std::atomic<bool> given_up_ = false;
};

}  // namespace tutti
