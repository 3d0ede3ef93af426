// The memory instructions the NVLink team is made of, each with its order and scope spelled out.
// Peer words are accessed at system scope: the writer is another GPU, or the host.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "device/team.hpp"

namespace tutti {

// Data of a peer: relaxed at system scope, so that no cache line from before a barrier is served.
__device__ __forceinline__ uint4 load_vector(const std::byte* from) {
  uint4 v;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  return v;
}

__device__ __forceinline__ void store_vector(std::byte* to, uint4 v) {
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");
}

__device__ __forceinline__ unsigned load_u32(const std::byte* from) {
  unsigned v;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  return v;
}
__device__ __forceinline__ void store_u32(std::byte* to, unsigned v) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to), "r"(v) : "memory");
}
__device__ __forceinline__ unsigned load_u16(const std::byte* from) {
  unsigned short v;
  asm volatile("ld.relaxed.sys.global.u16 %0, [%1];" : "=h"(v) : "l"(from) : "memory");
  return v;
}
__device__ __forceinline__ void store_u16(std::byte* to, unsigned v) {
  asm volatile("st.relaxed.sys.global.u16 [%0], %1;" ::"l"(to), "h"(static_cast<unsigned short>(v))
               : "memory");
}
__device__ __forceinline__ unsigned load_u8(const std::byte* from) {
  unsigned v;
  asm volatile("ld.relaxed.sys.global.u8 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  return v;
}
// 0 where it does not load.
__device__ __forceinline__ unsigned load_u8_if(bool loads, const std::byte* from) {
  unsigned v;
  asm volatile(
      "{\n .reg .pred p;\n setp.ne.u32 p, %2, 0;\n mov.u32 %0, 0;\n"
      " @p ld.relaxed.sys.global.u8 %0, [%1];\n}"
      : "=r"(v)
      : "l"(from), "r"(static_cast<unsigned>(loads))
      : "memory");
  return v;
}
__device__ __forceinline__ void store_u8(std::byte* to, unsigned v) {
  asm volatile("st.relaxed.sys.global.u8 [%0], %1;" ::"l"(to), "r"(v) : "memory");
}

__device__ __forceinline__ uint2 load_u64(const std::byte* from) {
  uint2 v;
  asm volatile("ld.relaxed.sys.global.v2.u32 {%0, %1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "l"(from)
               : "memory");
  return v;
}
__device__ __forceinline__ void store_u64(std::byte* to, uint2 v) {
  asm volatile("st.relaxed.sys.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(v.x), "r"(v.y)
               : "memory");
}

__device__ __forceinline__ std::uint64_t pack(uint2 v) {
  return static_cast<std::uint64_t>(v.y) << 32 | v.x;
}
__device__ __forceinline__ uint2 unpack(std::uint64_t v) {
  return uint2{static_cast<unsigned>(v), static_cast<unsigned>(v >> 32)};
}

// The 16 bytes that begin `bytes` (less than 16) behind the start of `low`, which `high` follows.
__device__ __forceinline__ uint4 shifted(uint4 low, uint4 high, unsigned bytes) {
  const bool eight = (bytes & 8u) != 0, four = (bytes & 4u) != 0;
  const unsigned word[] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  unsigned near[6], part[5];
  TUTTI_UNROLL
  for (int w = 0; w < 6; ++w) near[w] = eight ? word[w + 2] : word[w];
  TUTTI_UNROLL
  for (int w = 0; w < 5; ++w) part[w] = four ? near[w + 1] : near[w];
  const unsigned bits = 8 * (bytes & 3u);
  return uint4{__funnelshift_r(part[0], part[1], bits), __funnelshift_r(part[1], part[2], bits),
               __funnelshift_r(part[2], part[3], bits), __funnelshift_r(part[3], part[4], bits)};
}

// The first `bytes` (less than 16) of a vector. None behind them are read.
__device__ __forceinline__ uint4 load_front(const std::byte* from, unsigned bytes) {
  const unsigned eight = bytes & 8u, four = bytes & 4u, two = bytes & 2u;
  uint2 first = {};
  unsigned word = 0, half = 0, single = 0;
  if (eight != 0) first = load_u64(from);
  if (four != 0) word = load_u32(from + eight);
  if (two != 0) half = load_u16(from + eight + four);
  if ((bytes & 1u) != 0) single = load_u8(from + eight + four + two);
  const unsigned small = half | single << 8 * two;
  const uint2 rest = four != 0 ? uint2{word, small} : uint2{small, 0};
  return eight != 0 ? uint4{first.x, first.y, rest.x, rest.y} : uint4{rest.x, rest.y, 0, 0};
}

// 16 bytes at any address: the vector that they begin in, and what the next one has of them. The
// next lane may have loaded that. Bytes in front of them are loaded and dropped, which others may
// be writing; none behind them are, unless the next lane asks for them.
__device__ __noinline__ inline uint4 load_unaligned(const std::byte* from) {
  const auto behind = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(from) & 15u);
  const auto vector =
      static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(from)) - behind;
  const uint4 low = load_vector(from - behind);
  if (behind == 0) return low;
  const unsigned lanes = __activemask(), next = threadIdx.x % 32 + 1;
  const bool follows = __shfl_down_sync(lanes, vector, 1) == vector + 16;
  const bool is_loaded = follows && next < 32 && (lanes >> next & 1u) != 0;
  uint4 high = {};
  if (!is_loaded) high = load_front(from - behind + 16, behind);
  const uint4 beside = {__shfl_down_sync(lanes, low.x, 1), __shfl_down_sync(lanes, low.y, 1),
                        __shfl_down_sync(lanes, low.z, 1), __shfl_down_sync(lanes, low.w, 1)};
  return shifted(low, is_loaded ? beside : high, behind);
}

// Less than 16 bytes at any address, the rest zero. All accesses are under way together.
__device__ __noinline__ inline uint4 load_short(const std::byte* from, int bytes) {
  unsigned at[16];
  TUTTI_UNROLL
  for (int i = 0; i < 16; ++i) at[i] = load_u8_if(i < bytes, from + i);
  unsigned word[4];
  TUTTI_UNROLL
  for (int w = 0; w < 4; ++w) {
    word[w] = at[4 * w] | at[4 * w + 1] << 8 | at[4 * w + 2] << 16 | at[4 * w + 3] << 24;
  }
  return uint4{word[0], word[1], word[2], word[3]};
}

__device__ __forceinline__ uint4 load_bytes(const std::byte* from, int bytes) {
  return bytes == 16 ? load_unaligned(from) : load_short(from, bytes);
}

// The widest access that so many bytes at an address aligned to `width` allow.
__device__ inline int step_within(int bytes, int width) {
  while (width > bytes) width /= 2;
  return width;
}

// The first `bytes` of a vector, by accesses of `width` bytes at most, which `to` allows.
__device__ __noinline__ inline void store_bytes(std::byte* to, uint4 value, int width, int bytes) {
  if (width == 16 && bytes == 16) return store_vector(to, value);
  const std::uint64_t low = pack(uint2{value.x, value.y}), high = pack(uint2{value.z, value.w});
  for (int at = 0; at < bytes;) {
    const int step = step_within(bytes - at, min(width, 8));
    const std::uint64_t piece = (at < 8 ? low : high) >> (8 * at & 63);
    const auto word = static_cast<std::uint32_t>(piece);
    if (step == 8) store_u64(to + at, unpack(piece));
    if (step == 4) store_u32(to + at, word);
    if (step == 2) store_u16(to + at, word);
    if (step == 1) store_u8(to + at, word);
    at += step;
  }
}

// Flags: both words in one access; which need not arrive as one (see Flag).
__device__ __forceinline__ void store_flag(Flag* to, Flag flag) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(flag.epoch),
               "l"(flag.check)
               : "memory");
}
// Acquire at every poll: it costs the poller nothing that it would not spend waiting, where a fence
// after a relaxed poll would wait for this thread's own flags to arrive at the peers, and a second,
// acquiring load would take another trip to the cache.
__device__ __forceinline__ Flag load_acquire_flag(const Flag* from) {
  Flag flag;
  asm volatile("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(flag.epoch), "=l"(flag.check)
               : "l"(from)
               : "memory");
  return flag;
}
__device__ __forceinline__ Flag load_relaxed_flag(const Flag* from) {
  Flag flag;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(flag.epoch), "=l"(flag.check)
               : "l"(from)
               : "memory");
  return flag;
}

// Packets, two in one access: each arrives whole, the two perhaps apart.
__device__ __forceinline__ void store_packets(std::byte* to, const std::uint64_t* packets) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(packets[0]),
               "l"(packets[1])
               : "memory");
}
__device__ __forceinline__ void load_packets(const std::byte* from, std::uint64_t* packets) {
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(packets[0]), "=l"(packets[1])
               : "l"(from)
               : "memory");
}

// Release: before a relaxed flag store. Waits until this thread's stores, and those it has seen,
// have arrived: with stores to peers on the way, a trip over the link and back.
__device__ __forceinline__ void fence_release_system() {
  asm volatile("fence.acq_rel.sys;" ::: "memory");
}
// Words of this rank's own: other blocks of this GPU read and write them.
__device__ __forceinline__ std::uint32_t load_relaxed_gpu(const std::uint32_t* from) {
  std::uint32_t v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  return v;
}
__device__ __forceinline__ std::uint64_t load_relaxed_gpu(const std::uint64_t* from) {
  std::uint64_t v;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(from) : "memory");
  return v;
}
__device__ __forceinline__ std::uint64_t compare_and_swap(std::uint64_t* at, std::uint64_t expected,
                                                          std::uint64_t value) {
  std::uint64_t seen;
  asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(seen)
               : "l"(at), "l"(expected), "l"(value)
               : "memory");
  return seen;
}
// Words in shared memory, which the warps of a block write for each other.
__device__ __forceinline__ void store_release_block(std::uint32_t* to, std::uint32_t v) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(address), "r"(v) : "memory");
}
__device__ __forceinline__ std::uint32_t load_acquire_block(const std::uint32_t* from) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(from));
  std::uint32_t v;
  asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
  return v;
}
// Words the host reads or writes.
__device__ __forceinline__ std::uint32_t load_relaxed_system(const std::uint32_t* from) {
  std::uint32_t v;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  return v;
}
__device__ __forceinline__ std::uint32_t load_acquire_system(const std::uint32_t* from) {
  std::uint32_t v;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  return v;
}
__device__ __forceinline__ void store_relaxed_system(std::uint32_t* to, std::uint32_t v) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to), "r"(v) : "memory");
}

__device__ __forceinline__ std::uint64_t global_timer_ns() {
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
}

}  // namespace tutti
