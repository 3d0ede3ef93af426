// The library's bodies over a protocol that a test can weaken and delay. fp32 sums alone.
#pragma once

#include <cstdint>
#include <string_view>

#include "algorithms/catalogue.hpp"

namespace tutti::test {

// What the next kernels of a rank do. Barriers are numbered from 0 in each kernel.
struct CudaWeakening {
  static constexpr int kBarriers = 4;
  std::uint32_t skip_barrier = 0;                   // bit k: barrier k is left out
  std::uint32_t no_release = 0;                     // bit k: barrier k signals without release;
                                                    // bit 1 of a ring: chunks likewise
  std::uint32_t no_acquire = 0;                     // bit k: barrier k waits without acquire
  bool no_polls = false;                            // packets, chunks are taken, there or not
  bool no_emptying = false;                         // what was taken stays in its slot
  std::uint32_t before_arrival_ns[kBarriers] = {};  // delays of every block; packets: the first
  std::uint32_t before_wait_ns[kBarriers] = {};
};

// Null where the row has no weakened kernel.
CudaKernel weakened_kernel(const Algorithm& row);

// In stream order. False where CUDA refuses.
bool set_weakening(int rank, const CudaWeakening& weakening, Stream stream);

}  // namespace tutti::test
