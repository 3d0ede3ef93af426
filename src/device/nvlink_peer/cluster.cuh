// Clusters: blocks that run at the same time and reach each other's shared memory. Where a kernel
// is launched without them, or the GPU has none, every block is a cluster of its own.
#pragma once

#include <cstdint>

#include "device/packets.hpp"

namespace tutti {

#if __CUDA_ARCH__ >= 900
#define TUTTI_CLUSTER_REGISTER(name, block_name) \
  Slice v;                                       \
  asm("mov.u32 %0, %%" name ";" : "=r"(v));      \
  return v
#else
#define TUTTI_CLUSTER_REGISTER(name, block_name) return block_name
#endif

struct Cluster {
  // Which cluster of the grid, and how many there are.
  static __device__ __forceinline__ Slice index() {
    TUTTI_CLUSTER_REGISTER("clusterid.x", blockIdx.x);
  }
  static __device__ __forceinline__ Slice count() {
    TUTTI_CLUSTER_REGISTER("nclusterid.x", gridDim.x);
  }
  // Which block of the cluster, and how many there are.
  static __device__ __forceinline__ Slice rank() { TUTTI_CLUSTER_REGISTER("cluster_ctarank", 0); }
  static __device__ __forceinline__ Slice size() { TUTTI_CLUSTER_REGISTER("cluster_nctarank", 1); }

  static __device__ __forceinline__ Slice thread() { return rank() * blockDim.x + threadIdx.x; }
  static __device__ __forceinline__ Slice threads() { return size() * blockDim.x; }
};

#undef TUTTI_CLUSTER_REGISTER

// The same of blocks that are never launched in clusters.
struct SingleBlock {
  static __device__ __forceinline__ Slice index() { return blockIdx.x; }
  static __device__ __forceinline__ Slice count() { return gridDim.x; }
  static __device__ __forceinline__ Slice thread() { return threadIdx.x; }
  static __device__ __forceinline__ Slice threads() { return blockDim.x; }
};

}  // namespace tutti
