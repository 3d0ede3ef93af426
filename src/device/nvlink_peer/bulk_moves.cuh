// How one thread of a block moves data from global memory to global memory: through slots in
// shared memory, with two loads ahead of the store, and two stores behind it that still read.
#pragma once

#include "device/nvlink_peer/bulk_memory.cuh"
#include "device/nvlink_peer/waits.cuh"

namespace tutti {

// The slots of a block, kBulkBytes: the mover's, and behind them those of sums.
__device__ __forceinline__ uint4* bulk_slot(unsigned index) {
  extern __shared__ uint4 bulk_slots[];
  return bulk_slots + index * (kBulkSlotBytes / sizeof(uint4));
}

// How long a phase of a load barrier has taken, if that was too long. It depends on no peer, and
// who ended now would leave shared memory that is still written to: so nothing but the deadline
// calls it off.
__device__ inline std::uint64_t await_load(const KernelArgs& work, std::uint64_t* barrier,
                                           unsigned phase) {
  std::uint64_t start = 0;
  for (unsigned polls = 0; !is_loaded(barrier, phase); ++polls) {
    if (polls < kPollsBeforeClock || polls % kPollsPerClock != 0) continue;
    const std::uint64_t now = global_timer_ns();
    if (start == 0) start = now;
    if (now - start > timeout_ns(work)) return now - start;
  }
  return 0;
}

// In shared memory, so that it takes no registers of other threads; the mover's alone.
class BulkMoves {
 public:
  __device__ void open() {
    for (std::uint64_t& barrier : loaded_) init_load_barrier(&barrier, 1);
    fence_load_barriers();
    begun_ = passed_on_ = 0;
    late_ns_ = 0;
  }

  // Both addresses and `bytes` are multiples of 16.
  __device__ void move(const KernelArgs& work, std::byte* to, const std::byte* from,
                       std::size_t bytes) {
    // What the flags that were waited for told is before these copies.
    fence_proxy_async_global();
    TUTTI_NO_UNROLL
    for (std::size_t at = 0; at < bytes && late_ns_ == 0; at += kBulkSlotBytes) {
      const std::size_t left = bytes - at;
      begin(to + at, from + at, left < kBulkSlotBytes ? left : kBulkSlotBytes);
      if (begun_ - passed_on_ > kAhead) pass_on(work);
    }
  }

  // Until everything has arrived. If not 0, it has not: so long was a load waited for.
  __device__ std::uint64_t end(const KernelArgs& work) {
    while (passed_on_ != begun_ && late_ns_ == 0) pass_on(work);
    wait_bulk_stores();
    return late_ns_;
  }

 private:
  static constexpr unsigned kAhead = 2;  // loads that are not passed on yet

  __device__ void begin(std::byte* to, const std::byte* from, std::size_t bytes) {
    const unsigned index = begun_++ % kBulkMoves;
    // What the slot held before was passed on in the last group but one, or earlier.
    wait_bulk_reads<kBulkMoves - kAhead - 1>();
    to_[index] = to;
    bytes_[index] = static_cast<std::uint32_t>(bytes);
    bulk_load(bulk_slot(index), from, bytes_[index], &loaded_[index]);
  }

  // The oldest load, once it is there.
  __device__ void pass_on(const KernelArgs& work) {
    const unsigned index = passed_on_ % kBulkMoves;
    late_ns_ = await_load(work, &loaded_[index], passed_on_ / kBulkMoves);
    if (late_ns_ != 0) return;
    bulk_store(to_[index], bulk_slot(index), bytes_[index]);
    end_bulk_group();
    ++passed_on_;
  }

  std::uint64_t loaded_[kBulkMoves];  // mbarriers
  std::byte* to_[kBulkMoves];
  std::uint32_t bytes_[kBulkMoves];
  std::uint32_t begun_, passed_on_;  // moves
  std::uint64_t late_ns_;
};

}  // namespace tutti
