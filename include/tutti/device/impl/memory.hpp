// The memory accesses of signals and copies, with their order and scope. On the host a peer is
// another thread or process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tutti/device/impl/host_wait.hpp"
#include "tutti/device/threads.hpp"

namespace tutti::device::impl {

#if defined(__CUDACC__)

__device__ inline void load_relaxed(uint4& v, const std::byte* from) {
  asm volatile("ld.relaxed.sys.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
}
__device__ inline void store_relaxed(std::byte* to, const uint4& v) {
  asm volatile("st.relaxed.sys.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");
}
__device__ inline void load_relaxed(std::uint32_t& v, const std::byte* from) {
  asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
}
__device__ inline void store_relaxed(std::byte* to, std::uint32_t v) {
  asm volatile("st.relaxed.sys.u32 [%0], %1;" ::"l"(to), "r"(v) : "memory");
}
__device__ inline std::uint64_t now_ns() {
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
}
struct Octet {
  std::uint8_t bits;
};
__device__ inline void load_relaxed(Octet& v, const std::byte* from) {
  std::uint32_t bits;
  asm volatile("ld.relaxed.sys.u8 %0, [%1];" : "=r"(bits) : "l"(from) : "memory");
  v.bits = static_cast<std::uint8_t>(bits);
}
__device__ inline void store_relaxed(std::byte* to, Octet v) {
  asm volatile("st.relaxed.sys.u8 [%0], %1;" ::"l"(to), "r"(static_cast<std::uint32_t>(v.bits))
               : "memory");
}

// Copies the units `thread`, `thread` + `threads`, ... and keeps four loads in flight. Returns the
// bytes of all whole units.
template <class Unit>
__device__ inline std::size_t copy_units(unsigned thread, unsigned threads, std::byte* to,
                                         const std::byte* from, std::size_t bytes) {
  constexpr int kAtOnce = 4;
  constexpr std::size_t kUnit = sizeof(Unit);
  const std::size_t units = bytes / kUnit, step = threads;
  std::size_t at = thread;
#pragma unroll 1
  for (; at + (kAtOnce - 1) * step < units; at += kAtOnce * step) {
    Unit values[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) load_relaxed(values[k], from + kUnit * (at + k * step));
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) store_relaxed(to + kUnit * (at + k * step), values[k]);
  }
#pragma unroll 1
  for (; at < units; at += step) {
    Unit value;
    load_relaxed(value, from + kUnit * at);
    store_relaxed(to + kUnit * at, value);
  }
  return units * kUnit;
}

// Uses the widest of 16, 4 and 1 bytes that both addresses allow.
__device__ inline void copy_on_device(unsigned thread, unsigned threads, std::byte* to,
                                      const std::byte* from, std::size_t bytes) {
  const auto bits = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  std::size_t done = 0;
  if (bits % 16 == 0) {
    done = copy_units<uint4>(thread, threads, to, from, bytes);
  } else if (bits % 4 == 0) {
    done = copy_units<std::uint32_t>(thread, threads, to, from, bytes);
  }
  copy_units<Octet>(thread, threads, to + done, from + done, bytes - done);
}

#endif

struct SystemMemory {
  // Release, system scope: a peer that acquires `value` sees what this thread did and saw before
  // it.
  static TUTTI_DEVICE void store_release(std::uint64_t* to, std::uint64_t value) {
#if defined(__CUDA_ARCH__)
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
#else
    std::atomic_ref(*to).store(value, std::memory_order_release);
#endif
  }
  // Acquire, system scope.
  static TUTTI_DEVICE std::uint64_t load_acquire(std::uint64_t* from) {
#if defined(__CUDA_ARCH__)
    std::uint64_t value;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
#else
    return std::atomic_ref(*from).load(std::memory_order_acquire);
#endif
  }

  // A rank's own counters, with one user at a time: relaxed.
  static TUTTI_DEVICE std::uint64_t load(std::uint64_t* from) {
#if defined(__CUDA_ARCH__)
    std::uint64_t value;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
#else
    return std::atomic_ref(*from).load(std::memory_order_relaxed);
#endif
  }
  static TUTTI_DEVICE void store(std::uint64_t* to, std::uint64_t value) {
#if defined(__CUDA_ARCH__)
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
#else
    std::atomic_ref(*to).store(value, std::memory_order_relaxed);
#endif
  }
  // A word that another thread of this rank or the host may write: relaxed, system scope.
  static TUTTI_DEVICE std::uint32_t look(const std::uint32_t* from) {
#if defined(__CUDA_ARCH__)
    std::uint32_t value;
    load_relaxed(value, reinterpret_cast<const std::byte*>(from));
    return value;
#else
    return std::atomic_ref(const_cast<std::uint32_t&>(*from)).load(std::memory_order_relaxed);
#endif
  }

  // A word that the host writes: acquire, system scope.
  static TUTTI_DEVICE std::uint32_t look_acquire(const std::uint32_t* from) {
#if defined(__CUDA_ARCH__)
    std::uint32_t value;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
#else
    return std::atomic_ref(const_cast<std::uint32_t&>(*from)).load(std::memory_order_acquire);
#endif
  }

  // Copies this thread's part of `bytes` bytes. Relaxed, system scope: either end may be a peer's.
  template <class Threads>
  static TUTTI_DEVICE void copy(const Threads& threads, std::byte* to, const std::byte* from,
                                std::size_t bytes) {
#if defined(__CUDA_ARCH__)
    copy_on_device(threads.thread(), threads.threads(), to, from, bytes);
#else
    if (threads.thread() == 0 && bytes > 0) std::memmove(to, from, bytes);
#endif
  }

  // Waits until *word >= `expected`, and acquires. Returns false when `ends(seen, waited_ns,
  // look_at_host)` returns true; it is called at intervals. The first polls read no clock. On a GPU
  // `look_at_host` is true more rarely, because the host's word is across PCIe.
  template <class Ends>
  static TUTTI_DEVICE bool wait(std::uint64_t* word, std::uint64_t expected, const Ends& ends) {
#if defined(__CUDA_ARCH__)
    constexpr unsigned kFirst = 64, kEach = 64, kPerHostLook = 1024;
    std::uint64_t start = 0;
    for (unsigned polls = 0;; ++polls) {
      const std::uint64_t seen = load_acquire(word);
      if (seen >= expected) return true;
      if (polls < kFirst || polls % kEach != 0) continue;
      const std::uint64_t now = now_ns();
      if (start == 0) start = now;
      if (ends(seen, now - start, polls % kPerHostLook == 0)) return false;
    }
#else
    for (HostWait wait;;) {
      const std::uint64_t seen = load_acquire(word);
      if (seen >= expected) return true;
      if (wait.pause() && ends(seen, wait.waited_ns(), true)) return false;
    }
#endif
  }

  // Sets the word if it is 0; relaxed.
  static TUTTI_DEVICE void poison(std::uint32_t* word, std::uint32_t reason) {
#if defined(__CUDA_ARCH__)
    atomicCAS(word, 0u, reason);
#else
    std::uint32_t healthy = 0;
    std::atomic_ref(*word).compare_exchange_strong(healthy, reason, std::memory_order_relaxed);
#endif
  }
  // True for the first caller; relaxed.
  static TUTTI_DEVICE bool claim(std::uint32_t* word) {
#if defined(__CUDA_ARCH__)
    return atomicExch(word, 1u) == 0;
#else
    return std::atomic_ref(*word).exchange(1, std::memory_order_relaxed) == 0;
#endif
  }
  // Release, system scope: when the host sees `value`, it sees what was stored before.
  static TUTTI_DEVICE void publish(std::uint32_t* to, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
    asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
#else
    std::atomic_ref(*to).store(value, std::memory_order_release);
#endif
  }
};

}  // namespace tutti::device::impl
