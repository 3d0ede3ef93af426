/// \file
/// The threads that call a function of the device API together. The same source is compiled by nvcc
/// and by the host compiler. In device code they are threads of the GPU. In host code there is
/// one thread, the caller, and the host calls the "kernel" once per block.
#pragma once

#if defined(__CUDACC__)
#define TUTTI_DEVICE __host__ __device__ inline
#else
#define TUTTI_DEVICE inline
#endif

namespace tutti::device {

/// All threads of a one-dimensional block. Every thread of the block makes the call, with the same
/// arguments.
class Block {
 public:
  /// Host code: block `index` of `count`. Device code: the running block; arguments are ignored.
  TUTTI_DEVICE explicit Block(int index = 0, int count = 1) : index_(index), count_(count) {
#if defined(__CUDA_ARCH__)
    index_ = static_cast<int>(blockIdx.x);
    count_ = static_cast<int>(gridDim.x);
#endif
  }

  TUTTI_DEVICE int index() const { return index_; }  ///< index of the block in the grid
  TUTTI_DEVICE int count() const { return count_; }  ///< number of blocks of the grid

#if defined(__CUDA_ARCH__)
  TUTTI_DEVICE unsigned thread() const { return threadIdx.x; }  ///< index of the thread
  TUTTI_DEVICE unsigned threads() const { return blockDim.x; }  ///< number of threads
  /// Waits for all threads of the block, and makes what they stored visible to each other.
  TUTTI_DEVICE void sync() const { __syncthreads(); }
  /// sync(); returns whether `good` is true for every thread.
  TUTTI_DEVICE bool all(bool good) const { return __syncthreads_and(good ? 1 : 0) != 0; }
#else
  TUTTI_DEVICE unsigned thread() const { return 0; }   ///< index of the thread
  TUTTI_DEVICE unsigned threads() const { return 1; }  ///< number of threads
  /// Waits for all threads of the block, and makes what they stored visible to each other.
  TUTTI_DEVICE void sync() const {}
  /// sync(); returns whether `good` is true for every thread.
  TUTTI_DEVICE bool all(bool good) const { return good; }
#endif

 private:
  int index_, count_;
};

/// A single thread.
class Thread {
 public:
#if defined(__CUDA_ARCH__)
  TUTTI_DEVICE int index() const { return static_cast<int>(blockIdx.x); }  ///< of its block
#else
  TUTTI_DEVICE int index() const { return 0; }  ///< of its block
#endif
  TUTTI_DEVICE unsigned thread() const { return 0; }
  TUTTI_DEVICE unsigned threads() const { return 1; }
  TUTTI_DEVICE void sync() const {}
  TUTTI_DEVICE bool all(bool good) const { return good; }
};

}  // namespace tutti::device
