// The instructions that a switch carries out, on addresses of a multicast object. Relaxed, at
// system scope: the barriers around them order them. Only in builds with TUTTI_MULTICAST.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "device/team.hpp"
#include "tutti/device/scalar.hpp"

namespace tutti {

// What was stored by one address of a memory is seen by another one.
__device__ __forceinline__ void fence_between_addresses() {
  asm volatile("fence.proxy.alias;" ::: "memory");
}

__device__ __forceinline__ void store_vector_multicast(std::byte* to, uint4 v) {
  asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to),
               "f"(__uint_as_float(v.x)), "f"(__uint_as_float(v.y)), "f"(__uint_as_float(v.z)),
               "f"(__uint_as_float(v.w))
               : "memory");
}

// One vector of 16 bytes of every rank, reduced. Floats of 16 bits are added in fp32.
#define TUTTI_LOAD_REDUCE_WORDS(text)                                          \
  static __device__ __forceinline__ uint4 load_reduce(const std::byte* from) { \
    uint4 v;                                                                   \
    asm volatile(text " {%0, %1, %2, %3}, [%4];"                               \
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)                  \
                 : "l"(from)                                                   \
                 : "memory");                                                  \
    return v;                                                                  \
  }

// Integers and doubles come one by one: there are no vectors of them.
template <class T, class Load>
__device__ __forceinline__ uint4 load_one_by_one(const std::byte* from, Load load) {
  constexpr int kCount = 16 / sizeof(T);
  Tile<T, kCount> tile;
  TUTTI_UNROLL
  for (int i = 0; i < kCount; ++i) tile.at[i] = load(from + i * sizeof(T));
  return __builtin_bit_cast(uint4, tile);
}
#define TUTTI_LOAD_REDUCE_EACH(T, text, constraint)                            \
  static __device__ __forceinline__ uint4 load_reduce(const std::byte* from) { \
    return load_one_by_one<T>(from, [](const std::byte* at) {                  \
      T v;                                                                     \
      asm volatile(text " %0, [%1];" : constraint(v) : "l"(at) : "memory");    \
      return v;                                                                \
    });                                                                        \
  }

template <class T, SwitchOp kOp>
struct SwitchMemory;

template <>
struct SwitchMemory<Bfloat16, SwitchOp::kSum> {
  TUTTI_LOAD_REDUCE_WORDS("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2")
};
template <>
struct SwitchMemory<Half, SwitchOp::kSum> {
  TUTTI_LOAD_REDUCE_WORDS("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.f16x2")
};
template <>
struct SwitchMemory<float, SwitchOp::kSum> {
  static __device__ __forceinline__ uint4 load_reduce(const std::byte* from) {
    float4 v;
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(from)
                 : "memory");
    return __builtin_bit_cast(uint4, v);
  }
};
template <>
struct SwitchMemory<double, SwitchOp::kSum> {
  TUTTI_LOAD_REDUCE_EACH(double, "multimem.ld_reduce.relaxed.sys.global.add.f64", "=d")
};
template <>
struct SwitchMemory<std::uint32_t, SwitchOp::kSum> {
  TUTTI_LOAD_REDUCE_EACH(std::uint32_t, "multimem.ld_reduce.relaxed.sys.global.add.u32", "=r")
};
template <>
struct SwitchMemory<std::uint64_t, SwitchOp::kSum> {
  TUTTI_LOAD_REDUCE_EACH(std::uint64_t, "multimem.ld_reduce.relaxed.sys.global.add.u64", "=l")
};
template <>
struct SwitchMemory<std::int32_t, SwitchOp::kMin> {
  TUTTI_LOAD_REDUCE_EACH(std::int32_t, "multimem.ld_reduce.relaxed.sys.global.min.s32", "=r")
};
template <>
struct SwitchMemory<std::uint32_t, SwitchOp::kMin> {
  TUTTI_LOAD_REDUCE_EACH(std::uint32_t, "multimem.ld_reduce.relaxed.sys.global.min.u32", "=r")
};
template <>
struct SwitchMemory<std::int64_t, SwitchOp::kMin> {
  TUTTI_LOAD_REDUCE_EACH(std::int64_t, "multimem.ld_reduce.relaxed.sys.global.min.s64", "=l")
};
template <>
struct SwitchMemory<std::uint64_t, SwitchOp::kMin> {
  TUTTI_LOAD_REDUCE_EACH(std::uint64_t, "multimem.ld_reduce.relaxed.sys.global.min.u64", "=l")
};
template <>
struct SwitchMemory<std::int32_t, SwitchOp::kMax> {
  TUTTI_LOAD_REDUCE_EACH(std::int32_t, "multimem.ld_reduce.relaxed.sys.global.max.s32", "=r")
};
template <>
struct SwitchMemory<std::uint32_t, SwitchOp::kMax> {
  TUTTI_LOAD_REDUCE_EACH(std::uint32_t, "multimem.ld_reduce.relaxed.sys.global.max.u32", "=r")
};
template <>
struct SwitchMemory<std::int64_t, SwitchOp::kMax> {
  TUTTI_LOAD_REDUCE_EACH(std::int64_t, "multimem.ld_reduce.relaxed.sys.global.max.s64", "=l")
};
template <>
struct SwitchMemory<std::uint64_t, SwitchOp::kMax> {
  TUTTI_LOAD_REDUCE_EACH(std::uint64_t, "multimem.ld_reduce.relaxed.sys.global.max.u64", "=l")
};

#undef TUTTI_LOAD_REDUCE_WORDS
#undef TUTTI_LOAD_REDUCE_EACH

}  // namespace tutti
