// What the threads of a message team do with chunks: who of a block moves them, and how.
#pragma once

#include <cuda_runtime.h>

#include "device/messages.hpp"
#include "device/nvlink_peer/waits.cuh"

namespace tutti {

// Half of a block sends, the other half takes; the last warp of each does not move anything.
template <class Protocol>
class MessageMoves {
 public:
  static constexpr int kWarp = 32;

  __device__ explicit MessageMoves(const KernelArgs& work) : work_(work) {}

  __device__ void copy_chunk(std::byte* to, const std::byte* from, std::size_t bytes) const {
    if (is_postmaster()) return;
    const auto bits = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
    const int width = width_of(bits), stored = width_of(reinterpret_cast<std::uintptr_t>(to));
    const unsigned whole = width == 16 ? static_cast<unsigned>(bytes / 16) : 0;
    constexpr unsigned kAhead = 8;
    TUTTI_NO_UNROLL
    for (unsigned at = mover(); at < whole; at += kAhead * movers()) {
      uint4 part[kAhead];
      TUTTI_UNROLL
      for (unsigned i = 0; i < kAhead; ++i) {
        const unsigned vector = at + i * movers();
        part[i] = vector < whole ? load_vector(from + std::size_t{vector} * 16) : uint4{};
      }
      end_all_loads(work_);
      TUTTI_UNROLL
      for (unsigned i = 0; i < kAhead; ++i) {
        const unsigned vector = at + i * movers();
        if (vector < whole) store_vector(to + std::size_t{vector} * 16, part[i]);
      }
    }
    TUTTI_NO_UNROLL
    for (std::size_t at = (std::size_t{whole} + mover()) * 16; at < bytes;
         at += std::size_t{movers()} * 16) {
      const int count = static_cast<int>(bytes - at < 16 ? bytes - at : 16);
      const uint4 value = load_bytes(from + at, count);
      store_bytes(to + at, value, count == 16 ? stored : width, count);
    }
  }

  // 8 bytes in 16.
  __device__ void push_marked(std::byte* to, const std::byte* from, std::size_t bytes,
                              std::uint32_t mark) const {
    if (is_postmaster()) return;
    const int width = width_of(reinterpret_cast<std::uintptr_t>(from));
    TUTTI_NO_UNROLL
    for (std::size_t at = std::size_t{mover()} * 8; at < bytes; at += std::size_t{movers()} * 8) {
      const bool loaded = from + at == ahead_of_;
      const uint2 data = loaded ? ahead_ : load_eight(from + at, width, bytes - at);
      const std::uint64_t marked = std::uint64_t{mark} << 32;
      const std::uint64_t packets[] = {marked | data.x, marked | data.y};
      store_packets(to + 2 * at, packets);
    }
  }

  __device__ Outcome take_marked(std::byte* to, const std::byte* from, std::size_t bytes,
                                 MarkedFrom source) const {
    if (is_postmaster()) return Outcome::kDone;
    const int width = width_of(reinterpret_cast<std::uintptr_t>(to));
    TUTTI_NO_UNROLL
    for (std::size_t at = std::size_t{mover()} * 8; at < bytes; at += std::size_t{movers()} * 8) {
      std::uint64_t packets[2];
      if (take(from + 2 * at, source, packets) != Outcome::kDone) return Outcome::kFailed;
      store_eight(to + at, width, bytes - at,
                  uint2{static_cast<unsigned>(packets[0]), static_cast<unsigned>(packets[1])});
    }
    return Outcome::kDone;
  }

 protected:
  static __device__ unsigned half_threads() { return blockDim.x / 2; }
  static __device__ bool takes() { return threadIdx.x >= half_threads(); }
  static __device__ unsigned in_half() {
    return takes() ? threadIdx.x - half_threads() : threadIdx.x;
  }
  static __device__ unsigned movers() { return half_threads() - kWarp; }
  static __device__ unsigned mover() { return in_half(); }
  static __device__ bool is_postmaster() { return in_half() >= movers(); }
  static __device__ int thread() { return static_cast<int>(in_half() - movers()); }

  // The threads of a half, for each other's accesses as well.
  static __device__ void meet() {
    asm volatile("barrier.cta.sync %0, %1;" ::"r"(takes() ? 2 : 1), "r"(half_threads()) : "memory");
  }

  // Likewise, by whole warps that need not wait for the others.
  static __device__ void come() {
    asm volatile("barrier.cta.arrive %0, %1;" ::"r"(takes() ? 2 : 1), "r"(half_threads())
                 : "memory");
  }

  static __device__ uint2 load_eight(const std::byte* from, int width, std::size_t left) {
    if (width >= 8 && left >= 8) return load_u64(from);
    const uint4 loaded = load_short(from, static_cast<int>(left < 8 ? left : 8));
    return uint2{loaded.x, loaded.y};
  }
  static __device__ void store_eight(std::byte* to, int width, std::size_t left, uint2 data) {
    if (width >= 8 && left >= 8) return store_u64(to, data);
    const int count = static_cast<int>(left < 8 ? left : 8);
    store_bytes(to, uint4{data.x, data.y, 0, 0}, width, count);
  }

  const KernelArgs& work_;
  // What was loaded before it was known where it goes, and where it was loaded from.
  uint2 ahead_ = {};
  const std::byte* ahead_of_ = nullptr;

 private:
  __device__ Outcome take(const std::byte* from, MarkedFrom source, std::uint64_t* packets) const {
    for (Patience patience;;) {
      load_packets(from, packets);
      if (packets[0] >> 32 == source.mark && packets[1] >> 32 == source.mark) return Outcome::kDone;
      if (!Protocol::polls()) return Outcome::kDone;
      if (!patience.is_tried()) continue;
      const Outcome end = patience.look_up(work_, {source.mark, {}, source.peer, 0});
      if (end != Outcome::kDone) return end;
    }
  }
};

}  // namespace tutti
