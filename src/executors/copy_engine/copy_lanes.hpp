// Streams of a communicator for copies beside the caller's stream.
#pragma once

#include <array>
#include <cstddef>

#include "drivers/cuda.hpp"

namespace tutti {

// A stream for copies. Not thread-safe.
struct CopyLane {
  static constexpr std::size_t kEvents = 32;
  Stream stream = nullptr;
  std::array<CudaEvent, kEvents> events{};
  std::size_t taken = 0;     // marks: they go round
  bool is_captured = false;  // what it serves

  CudaEvent next_event() { return events[taken++ % kEvents]; }
};

// One lane for what is not captured, and one for each of a few captures that are under way at once:
// a stream stays part of a capture until that ends. Each is made when it is first needed: a stream
// takes half a MiB of the device, and a process has few hardware queues; streams that share one
// wait for each other.
class CopyLanes {
 public:
  static constexpr std::size_t kCaptures = 4;

  explicit CopyLanes(CudaDriver& cuda) : cuda_(cuda) {}
  ~CopyLanes();
  CopyLanes(const CopyLanes&) = delete;
  CopyLanes& operator=(const CopyLanes&) = delete;

  void serve(int device) { device_ = device; }
  // And makes the eager lane at once.
  Status create(int device);
  CopyLane& eager() { return lanes_.front(); }
  // kResourceExhausted where as many other captures have lanes.
  Result<CopyLane*> lane_for(Stream stream);

 private:
  Status complete(CopyLane& lane);

  CudaDriver& cuda_;
  int device_ = 0;
  std::array<CopyLane, 1 + kCaptures> lanes_;
};

}  // namespace tutti
