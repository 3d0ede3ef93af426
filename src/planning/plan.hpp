// What runs an operation, and how: decided here and nowhere else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "algorithms/catalogue.hpp"
#include "tutti/tuning.hpp"

namespace tutti {

// How peers reach the buffers that they read or write.
enum class BufferAccess : std::uint8_t {
  kMapped,     // at once: these are symmetric or registered, or no peer touches any
  kStaged,     // what peers touch goes through staging
  kLate,       // once finish_capture(), or for copy engines the call itself, has registered them
  kByAddress,  // ranks are threads of one process, and tell each other where these lie
};

struct OperationPlan {
  const Algorithm* algorithm = nullptr;
  int blocks = 1;               // of the grid (CUDA); sequential parts (host)
  int threads = 1;              // per block (CUDA)
  std::size_t chunk_bytes = 0;  // staged: bytes per pass; 0: the whole staging
  PlanSource source = PlanSource::kModel;
  bool emulated = false;  // it was named, and what it needs is done by a loop over the peers
  bool alone = false;     // one rank: a copy, and no algorithm runs
  BufferAccess access = BufferAccess::kMapped;
  bool stream_barrier = false;    // ranks meet by stream memory operations, not by kernels
  bool one_way = false;           // if it is, or has, a ring over the network that may go both ways
  std::uint64_t fingerprint = 0;  // of all that ranks must have alike

  bool staged() const { return access == BufferAccess::kStaged; }
};

// For people, and for callers who ask.
Plan describe(const OperationPlan& plan);

}  // namespace tutti
