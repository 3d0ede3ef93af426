// The instructions of bulk copies: between global and shared memory, by hardware beside the thread
// that issues them. To the memory model they are another proxy: what threads did by ordinary
// accesses it knows across a proxy fence, and what it has done they know once they have waited.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace tutti {

// Of the architecture that is compiled for: without them, threads copy.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
inline constexpr bool kHasBulkCopies = false;
#else
inline constexpr bool kHasBulkCopies = true;
#endif

__device__ __forceinline__ std::uint32_t shared_address(const void* at) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
}

// This thread's ordinary accesses, and those of others that it knows of, are before the bulk copies
// that it issues from now on, or lets others issue. The other way there is nothing to do: who has
// waited for a copy knows what it did.
__device__ __forceinline__ void fence_proxy_async_global() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}
__device__ __forceinline__ void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// `barrier`: in shared memory. A phase is complete when so many have arrived, each load once, and
// all that they bring is there.
__device__ __forceinline__ void init_load_barrier(std::uint64_t* barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}
// Without a load. Releases, at the block's scope.
__device__ __forceinline__ void arrive_at_load_barrier(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
__device__ __forceinline__ void fence_load_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Addresses and `bytes` are multiples of 16.
__device__ __forceinline__ void bulk_load(void* to, const std::byte* from, std::uint32_t bytes,
                                          std::uint64_t* barrier) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}
// Whether the load of this phase is complete. Acquires it (scope: block).
__device__ __forceinline__ bool is_loaded(std::uint64_t* barrier, unsigned phase) {
  std::uint32_t loaded;
  asm volatile(
      "{\n .reg .pred p;\n mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      " selp.u32 %0, 1, 0, p;\n}"
      : "=r"(loaded)
      : "r"(shared_address(barrier)), "r"(phase & 1u)
      : "memory");
  return loaded != 0;
}

__device__ __forceinline__ void bulk_store(std::byte* to, const void* from, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
}
// What this thread has stored since the last one is a group.
__device__ __forceinline__ void end_bulk_group() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Until no more than `kLeft` of this thread's groups have still to read shared memory.
template <int kLeft>
__device__ __forceinline__ void wait_bulk_reads() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kLeft) : "memory");
}
// Until all of this thread's groups have arrived, as if it had stored them.
__device__ __forceinline__ void wait_bulk_stores() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

}  // namespace tutti
