// Peer access, proved by moving data, and what a copy costs.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "drivers/cuda.hpp"

namespace tutti::cli {

inline constexpr int kHostEnd = -1;  // an end of a transfer that is no GPU

struct Transfer {
  int from = 0, to = 0;   // GPUs, or kHostEnd: pinned memory of the host
  bool allowed = false;   // the driver's word
  bool intact = false;    // a pattern arrived
  bool skipped = false;   // there was no time for it
  double gbps = 0;        // of one copy engine; 0: not measured
  double latency_us = 0;  // of a small copy in a CUDA graph; 0: not measured
  std::string why = {};   // what failed

  bool between_gpus() const { return from != kHostEnd && to != kHostEnd; }
};

// Between the host and each GPU, and between every ordered pair of GPUs, one after the other. None
// is begun after `budget`.
std::vector<Transfer> try_transfers(CudaDriver& cuda, int gpus, std::chrono::milliseconds budget);

// Two matrices for people: GB/s and microseconds, a line for each source, a column for each GPU.
// Empty where nothing was tried.
std::string print_transfers(const std::vector<Transfer>& transfers);

}  // namespace tutti::cli
