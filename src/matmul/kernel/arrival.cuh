// What the gate of arrivals does on a GPU.
#pragma once

#include "matmul/kernel/arrival.hpp"
#include "matmul/kernel/leader.cuh"
#include "tutti/device/impl/memory.hpp"

namespace tutti {

// Words that copy engines, the host or other GPUs read and write.
struct SystemWords {
  using Memory = device::impl::SystemMemory;

  __device__ std::uint32_t relaxed(const std::uint32_t* word) const { return Memory::look(word); }
  __device__ std::uint32_t acquire(const std::uint32_t* word) const {
    return Memory::look_acquire(word);
  }
  __device__ void store(std::uint32_t* word, std::uint32_t value) const {
    device::impl::store_relaxed(reinterpret_cast<std::byte*>(word), value);
  }
  __device__ void release(std::uint32_t* word, std::uint32_t value) const {
    asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
  }
  // Among the blocks of this grid, which is why it need not be atomic for the host.
  __device__ bool claim(std::uint32_t* word) const { return atomicExch(word, 1U) == 0; }
  __device__ std::uint64_t now() const { return device::impl::now_ns(); }
  __device__ void pause() const { __nanosleep(pause_ns); }

  unsigned pause_ns = 64;
};

__device__ __forceinline__ void ArrivalGate::open(State& state, const StepWord& word) const {
  ptx::spin([&] { return state.next(word); }, patience());
  word.tell_begun(state.begun());
}

__device__ __forceinline__ bool ArrivalGate::wait(Seen& seen, GroupOfRows rows) const {
  SystemWords words{pause_ns()};
  wait_for_rows(words, chunks, waits, seen, rows);
  return !seen.failed;
}

// Sets the flags in the order of their times, unless a wait fails.
__device__ __forceinline__ void ArrivalGate::replay() const {
  constexpr unsigned kTurnsPerLook = 256;
  SystemWords words;
  const std::uint64_t begin = words.now();
  unsigned turns = 0;
  for (int i = 0; i < replays; ++i) {
    const ReplayedArrival arrival = replayed[i];
    while (words.now() - begin < arrival.ns) {
      if (++turns % kTurnsPerLook == 0 && words.relaxed(&waits.failure->failed) != 0) return;
      __nanosleep(32);
    }
    words.release(waits.flags + arrival.chunk, waits.epoch);
  }
}

}  // namespace tutti
