// The instructions of Hopper that C++ has no words for: barriers that count bytes, bulk tensor
// copies (TMA), warpgroup matrix products (wgmma), clusters. One function per instruction;
// addresses of shared memory are 32-bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/tensor_map.hpp"

namespace tutti::ptx {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// --- barriers in shared memory ---

__device__ __forceinline__ void barrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

// Initialised barriers become visible to the cluster and to TMA.
__device__ __forceinline__ void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives, and lets the phase wait for so many bytes, too.
__device__ __forceinline__ void barrier_expect(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Arrives at the barrier at this address in block `block` of the cluster. The default scope, of a
// block, suffices: what the arriving warp read with wgmma has ended, and who waits only starts TMA.
// `.release.cluster` compiles to a fence of the whole GPU.
__device__ __forceinline__ void barrier_arrive(std::uint32_t barrier, std::uint32_t block) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}" ::"r"(barrier),
      "r"(block)
      : "memory");
}

__device__ __forceinline__ bool barrier_test(std::uint32_t barrier, std::uint32_t parity) {
  std::uint32_t passed;
  asm volatile(
      "{\n"
      ".reg .pred passed;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 passed, [%1], %2;\n"
      "selp.b32 %0, 1, 0, passed;\n"
      "}"
      : "=r"(passed)
      : "r"(barrier), "r"(parity)
      : "memory");
  return passed != 0;
}

// Until `passed`. Only this cluster and TMA bring that about, within microseconds, unless a gate
// keeps the thread that loads. After 2^24 tries, which are more than 100 ms, `patience` times, the
// kernel traps instead of hanging.
template <class Passed>
__device__ __forceinline__ void spin(const Passed& passed, int patience) {
  constexpr int kMostTries = 1 << 24;
  for (int tries = 0; !passed(); ++tries) {
    if (tries != kMostTries) continue;
    if (patience <= 1) {
      __trap();
    } else {
      --patience;
      tries = 0;
    }
  }
}

// Until the phase of this parity has ended.
__device__ __forceinline__ void barrier_wait(std::uint32_t barrier, std::uint32_t parity,
                                             int patience) {
  spin([&] { return barrier_test(barrier, parity); }, patience);
}

// --- clusters ---

__device__ __forceinline__ std::uint32_t cluster_rank() {
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// --- TMA ---

__device__ __forceinline__ void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Where in a matrix a box begins: elements along a row of the map, and rows.
struct BoxPlace {
  int x, y;
};

// A box of a matrix to shared memory; its bytes count at `barrier`.
__device__ __forceinline__ void load_box(std::uint32_t to, const TensorMap& map,
                                         std::uint32_t barrier, BoxPlace from) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(from.x), "r"(from.y)
      : "memory");
}

// To the same address in every block of the cluster whose bit is set in `blocks`, each of which
// counts the bytes at its own barrier.
__device__ __forceinline__ void load_box_to(std::uint16_t blocks, std::uint32_t to,
                                            const TensorMap& map, std::uint32_t barrier,
                                            BoxPlace from) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(from.x), "r"(from.y), "h"(blocks)
      : "memory");
}

// Four 8x8 matrices of 16-bit elements, from the layout of wgmma's accumulators; this thread names
// the address of one row.
__device__ __forceinline__ void store_matrices(std::uint32_t row, const std::uint32_t (&words)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
               "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}

__device__ __forceinline__ uint4 load_words(std::uint32_t address) {
  uint4 words;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "r"(address)
               : "memory");
  return words;
}

// One store of 16 bytes; the compiler might split it.
__device__ __forceinline__ void store_words(void* address, uint4 words) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(words.x),
               "r"(words.y), "r"(words.z), "r"(words.w)
               : "memory");
}

// --- registers of a warpgroup ---

template <int kRegisters>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace tutti::ptx
