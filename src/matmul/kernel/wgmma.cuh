// Warpgroup matrix products: D[64, n] += A[64, 16] x B[16, n], with A and B in shared memory and D
// in the registers of four warps. Source: PTX ISA, "Asynchronous Warpgroup Level Matrix
// Instructions".
#pragma once

#include <cstdint>
#include <type_traits>

#include "tutti/device/scalar.hpp"

namespace tutti::ptx {

// What wgmma calls a matrix descriptor: where a tile lies whose rows have 128 bytes, as TMA
// swizzles them. `distance`: bytes between tiles that are neighbours along a row of the matrix,
// where the product is wider than one (B row-major); else the hardware ignores it.
__device__ __forceinline__ std::uint64_t matrix_at(std::uint32_t address, std::uint32_t distance) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
  constexpr std::uint64_t kEightRows = std::uint64_t{8 * 128 >> 4} << 32;
  // Above the 18 bits of an address is the number of the block in its cluster.
  return kSwizzle128 | kEightRows | std::uint64_t{distance >> 4} << 16 | (address & 0x3FFFF) >> 4;
}

// The descriptor of what lies `bytes` further on.
__device__ __forceinline__ std::uint64_t moved(std::uint64_t matrix, std::uint32_t bytes) {
  return matrix + (bytes >> 4);
}

__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Until at most kPending groups of this warpgroup are under way.
template <int kPending>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// Keeps the compiler from moving accesses of accumulators across this place.
template <int kCount>
__device__ __forceinline__ void hold(float (&accumulators)[kCount]) {
#pragma unroll
  for (float& accumulator : accumulators) asm volatile("" : "+f"(accumulator)::"memory");
}

// Without this the compiler keeps a register for every accumulator of every width, since each may
// have a value from the tile before.
template <int kCount>
__device__ __forceinline__ void clear(float (&accumulators)[kCount]) {
#pragma unroll
  for (float& accumulator : accumulators)
    asm volatile("mov.f32 %0, 0f00000000;" : "=f"(accumulator));
}

// clang-format off
#define TUTTI_F4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define TUTTI_F8(i) TUTTI_F4(i), TUTTI_F4(i + 4)
#define TUTTI_F16(i) TUTTI_F8(i), TUTTI_F8(i + 8)

// The accumulators of each width, as numbers of operands and as operands.
#define TUTTI_NUMBERS_112                                                                         \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"                          \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"              \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"              \
  ", %48, %49, %50, %51, %52, %53, %54, %55"
#define TUTTI_NUMBERS_128                                                                         \
  TUTTI_NUMBERS_112                                                                               \
  ", %56, %57, %58, %59, %60, %61, %62, %63"
#define TUTTI_NUMBERS_144                                                                         \
  TUTTI_NUMBERS_128                                                                               \
  ", %64, %65, %66, %67, %68, %69, %70, %71"
#define TUTTI_NUMBERS_160                                                                         \
  TUTTI_NUMBERS_144                                                                               \
  ", %72, %73, %74, %75, %76, %77, %78, %79"
#define TUTTI_NUMBERS_176                                                                         \
  TUTTI_NUMBERS_160                                                                               \
  ", %80, %81, %82, %83, %84, %85, %86, %87"
#define TUTTI_NUMBERS_192                                                                         \
  TUTTI_NUMBERS_176                                                                               \
  ", %88, %89, %90, %91, %92, %93, %94, %95"
#define TUTTI_NUMBERS_208                                                                         \
  TUTTI_NUMBERS_192                                                                               \
  ", %96, %97, %98, %99, %100, %101, %102, %103"
#define TUTTI_NUMBERS_224                                                                         \
  TUTTI_NUMBERS_208                                                                               \
  ", %104, %105, %106, %107, %108, %109, %110, %111"
#define TUTTI_NUMBERS_240                                                                         \
  TUTTI_NUMBERS_224                                                                               \
  ", %112, %113, %114, %115, %116, %117, %118, %119"
#define TUTTI_NUMBERS_256                                                                         \
  TUTTI_NUMBERS_240                                                                               \
  ", %120, %121, %122, %123, %124, %125, %126, %127"
#define TUTTI_SUMS_112 TUTTI_F16(0), TUTTI_F16(16), TUTTI_F16(32), TUTTI_F8(48)
#define TUTTI_SUMS_128 TUTTI_SUMS_112, TUTTI_F8(56)
#define TUTTI_SUMS_144 TUTTI_SUMS_128, TUTTI_F8(64)
#define TUTTI_SUMS_160 TUTTI_SUMS_144, TUTTI_F8(72)
#define TUTTI_SUMS_176 TUTTI_SUMS_160, TUTTI_F8(80)
#define TUTTI_SUMS_192 TUTTI_SUMS_176, TUTTI_F8(88)
#define TUTTI_SUMS_208 TUTTI_SUMS_192, TUTTI_F8(96)
#define TUTTI_SUMS_224 TUTTI_SUMS_208, TUTTI_F8(104)
#define TUTTI_SUMS_240 TUTTI_SUMS_224, TUTTI_F8(112)
#define TUTTI_SUMS_256 TUTTI_SUMS_240, TUTTI_F8(120)

// `a_`, `b_`, `add_`, `rows_`: numbers of the operands after the accumulators.
#define TUTTI_WGMMA(n, type, a_, b_, add_, rows_)                                                 \
  asm volatile(                                                                                   \
      "{\n.reg .pred add;\nsetp.ne.b32 add, %" #add_ ", 0;\n"                                     \
      "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " {" TUTTI_NUMBERS_##n "}, "\
      "%" #a_ ", %" #b_ ", add, 1, 1, 0, %" #rows_ ";\n}"                                         \
      : TUTTI_SUMS_##n                                                                            \
      : "l"(a), "l"(b), "r"(add), "n"(kRowMajorB ? 1 : 0))

// `add`: 0 sets D instead of adding to it. The last operand says whether B is row-major.
#define TUTTI_MULTIPLY(n, a_, b_, add_, rows_)                                                    \
  template <class Element, bool kRowMajorB>                                                       \
  __device__ __forceinline__ void multiply(float(&d)[n / 2], std::uint64_t a, std::uint64_t b,    \
                                           int add) {                                             \
    if constexpr (std::is_same_v<Element, Half>) {                                                \
      TUTTI_WGMMA(n, "f16", a_, b_, add_, rows_);                                                 \
    } else {                                                                                      \
      TUTTI_WGMMA(n, "bf16", a_, b_, add_, rows_);                                                \
    }                                                                                             \
  }
TUTTI_MULTIPLY(112, 56, 57, 58, 59)
TUTTI_MULTIPLY(128, 64, 65, 66, 67)
TUTTI_MULTIPLY(144, 72, 73, 74, 75)
TUTTI_MULTIPLY(160, 80, 81, 82, 83)
TUTTI_MULTIPLY(176, 88, 89, 90, 91)
TUTTI_MULTIPLY(192, 96, 97, 98, 99)
TUTTI_MULTIPLY(208, 104, 105, 106, 107)
TUTTI_MULTIPLY(224, 112, 113, 114, 115)
TUTTI_MULTIPLY(240, 120, 121, 122, 123)
TUTTI_MULTIPLY(256, 128, 129, 130, 131)
// clang-format on

#undef TUTTI_MULTIPLY
#undef TUTTI_WGMMA
#undef TUTTI_NUMBERS_112
#undef TUTTI_NUMBERS_128
#undef TUTTI_NUMBERS_144
#undef TUTTI_NUMBERS_160
#undef TUTTI_NUMBERS_176
#undef TUTTI_NUMBERS_192
#undef TUTTI_NUMBERS_208
#undef TUTTI_NUMBERS_224
#undef TUTTI_NUMBERS_240
#undef TUTTI_NUMBERS_256
#undef TUTTI_SUMS_112
#undef TUTTI_SUMS_128
#undef TUTTI_SUMS_144
#undef TUTTI_SUMS_160
#undef TUTTI_SUMS_176
#undef TUTTI_SUMS_192
#undef TUTTI_SUMS_208
#undef TUTTI_SUMS_224
#undef TUTTI_SUMS_240
#undef TUTTI_SUMS_256
#undef TUTTI_F16
#undef TUTTI_F8
#undef TUTTI_F4

}  // namespace tutti::ptx
