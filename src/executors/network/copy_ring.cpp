#include "executors/network/copy_ring.hpp"

#include <algorithm>
#include <atomic>

namespace tutti {

std::uint64_t CopyRing::add(const RequestedCopy& copy) {
  waiting_.push_back(copy);
  return ++added_;
}

// Acquire: what the kernel has copied. Release: the requests, and what it copies from.
bool CopyRing::flush(RunningClock::time_point now) {
  const std::uint64_t done = std::atomic_ref(page_.done).load(std::memory_order_acquire);
  const std::uint64_t before = posted_;
  const bool moved = done != done_;
  if (moved || posted_ == done_) since_ = now;
  done_ = done;
  while (!waiting_.empty() && posted_ - done_ < CopyRequests::kSlots) {
    page_.slots[posted_++ % CopyRequests::kSlots] = waiting_.front();
    waiting_.pop_front();
  }
  if (posted_ != before) std::atomic_ref(page_.posted).store(posted_, std::memory_order_release);
  return moved || posted_ != before;
}

RunningClock::duration CopyRing::idle(RunningClock::time_point now) const {
  return posted_ == done_ ? RunningClock::duration::zero() : now - since_;
}

}  // namespace tutti
