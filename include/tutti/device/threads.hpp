// The threads that make a call of the device API together: one source for nvcc and for the host
// compiler. In device code they are threads of the GPU; in host code each group is the one thread
// that calls, and whoever runs the kernel calls it once per block.
#pragma once

#if defined(__CUDACC__)
#define TUTTI_DEVICE __host__ __device__ inline
#else
#define TUTTI_DEVICE inline
#endif

namespace tutti::device {

// All threads of a block of one dimension. Calls that take a Block are made by every one of them
// with the same arguments.
class Block {
 public:
  // On the host: block `index` of `count`. In device code it is the block that runs.
  TUTTI_DEVICE explicit Block(int index = 0, int count = 1) : index_(index), count_(count) {
#if defined(__CUDA_ARCH__)
    index_ = static_cast<int>(blockIdx.x);
    count_ = static_cast<int>(gridDim.x);
#endif
  }

  TUTTI_DEVICE int index() const { return index_; }  // among the grid's blocks
  TUTTI_DEVICE int count() const { return count_; }

#if defined(__CUDA_ARCH__)
  TUTTI_DEVICE unsigned thread() const { return threadIdx.x; }
  TUTTI_DEVICE unsigned threads() const { return blockDim.x; }
  // Every thread has come so far, and sees what the others stored.
  TUTTI_DEVICE void sync() const { __syncthreads(); }
  // sync(), and whether `good` holds for every thread.
  TUTTI_DEVICE bool all(bool good) const { return __syncthreads_and(good ? 1 : 0) != 0; }
#else
  TUTTI_DEVICE unsigned thread() const { return 0; }
  TUTTI_DEVICE unsigned threads() const { return 1; }
  TUTTI_DEVICE void sync() const {}
  TUTTI_DEVICE bool all(bool good) const { return good; }
#endif

 private:
  int index_, count_;
};

// One thread, on its own.
class Thread {
 public:
#if defined(__CUDA_ARCH__)
  TUTTI_DEVICE int index() const { return static_cast<int>(blockIdx.x); }
#else
  TUTTI_DEVICE int index() const { return 0; }
#endif
  TUTTI_DEVICE unsigned thread() const { return 0; }
  TUTTI_DEVICE unsigned threads() const { return 1; }
  TUTTI_DEVICE void sync() const {}
  TUTTI_DEVICE bool all(bool good) const { return good; }
};

}  // namespace tutti::device
