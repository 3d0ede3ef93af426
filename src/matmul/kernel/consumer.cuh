// A warpgroup that multiplies: its half of a tile's rows, by all columns.
#pragma once

#include "matmul/kernel/ring.cuh"
#include "matmul/kernel/wgmma.cuh"

namespace tutti {

template <class Tiles, class Element, class Gate>
struct Consumer {
  // Of a tile with so many columns.
  template <int kColumns>
  using Sums = float[Tiles::kBlocks][kColumns / 2];

  Stages<Tiles> stages;
  const Gate& gate;
  int warpgroup;
  int blocks;  // of the cluster
  int stages_of_k;
  StageCursor at;

  __device__ int first_row() const { return warpgroup * (Tiles::kBlocks * 64); }  // of the tile

  // All products of a stage: four times 16 elements of K.
  template <int kColumns>
  __device__ __forceinline__ void multiply_stage(Sums<kColumns>& sums, bool first) {
    // 16 elements of K are 16 rows of 128 bytes in a row-major B, and 32 bytes elsewhere.
    constexpr std::uint32_t kStepA = 32, kStepB = Tiles::kRowMajorB ? 16 * 128 : 32;
    constexpr std::uint32_t kBlockBytes = 64 * 128;
    const std::uint64_t a =
        ptx::matrix_at(stages.a(at.stage) + warpgroup * (Tiles::kBlocks * kBlockBytes), 0);
    const std::uint64_t b = ptx::matrix_at(stages.b(at.stage), Tiles::kK * 128);
#pragma unroll
    for (int step = 0; step < Tiles::kK / 16; ++step) {
#pragma unroll
      for (int block = 0; block < Tiles::kBlocks; ++block) {
        ptx::multiply<Element, Tiles::kRowMajorB>(
            sums[block], ptx::moved(a, block * kBlockBytes + step * kStepA),
            ptx::moved(b, step * kStepB), first && step == 0 ? 0 : 1);
      }
    }
  }

  // Tells the producer of every block of the cluster that this warp has read the stage.
  __device__ void release(int stage) {
    const int lane = threadIdx.x % 32;
    if (lane < blocks) ptx::barrier_arrive(stages.empty(stage), lane);
  }

  // Computes one tile. The products of a stage overlap the end of those of the stage before.
  template <int kColumns>
  __device__ __forceinline__ void run(Sums<kColumns>& sums) {
#pragma unroll
    for (int block = 0; block < Tiles::kBlocks; ++block) ptx::clear(sums[block]);
    int before = 0;
    for (int k = 0; k < stages_of_k; ++k) {
      ptx::barrier_wait(stages.full(at.stage), at.parity, gate.patience());
#pragma unroll
      for (int block = 0; block < Tiles::kBlocks; ++block) ptx::hold(sums[block]);
      ptx::begin_products();
      multiply_stage<kColumns>(sums, k == 0);
      ptx::commit_products();
      ptx::wait_products<1>();
      if (k > 0) release(before);
      before = at.stage;
      at.advance();
    }
    ptx::wait_products<0>();
#pragma unroll
    for (int block = 0; block < Tiles::kBlocks; ++block) ptx::hold(sums[block]);
    release(before);
  }
};

}  // namespace tutti
