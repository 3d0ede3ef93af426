// The host's side of a page of CopyRequests: asks for copies in order, and knows which are done.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/deadline.hpp"
#include "device/requested_copies.hpp"

namespace tutti {

inline constexpr int kRequestThreads = 512;
// __global__ void(RequestedCopies), of one block; null in builds without CUDA.
const void* requested_copies_kernel();

class CopyRing {
 public:
  // All zero.
  explicit CopyRing(CopyRequests& page) : page_(page) {}

  // Its number. It is asked for by the next flush() that finds a slot free.
  std::uint64_t add(const RequestedCopy& copy);
  // Whether anything was asked for, or has been done since.
  bool flush(RunningClock::time_point now);
  // As of the last flush().
  std::uint64_t done() const { return done_; }
  // How long nothing has been done of what was asked for.
  RunningClock::duration idle(RunningClock::time_point now) const;

 private:
  CopyRequests& page_;
  std::deque<RequestedCopy> waiting_;
  std::uint64_t added_ = 0, posted_ = 0, done_ = 0;
  RunningClock::time_point since_;
};

}  // namespace tutti
