// A warpgroup that multiplies: its half of a tile's rows, by all columns.
#pragma once

#include "matmul/kernel/ring.cuh"
#include "matmul/kernel/wgmma.cuh"

namespace tutti {

template <class Tile, class Element>
struct Consumer {
  using Accumulators = float[Tile::kBlocks][Tile::kN / 2];

  Stages<Tile> stages;
  int warpgroup;
  int blocks;  // of the cluster
  StageCursor<Tile> at = {};

  // All products of a stage: four times 16 elements of K.
  __device__ void multiply_stage(Accumulators& sums, bool first) {
    // 16 elements of K are 16 rows of 128 bytes in a row-major B, and 32 bytes elsewhere.
    constexpr std::uint32_t kStepA = 32, kStepB = Tile::kRowMajorB ? 16 * 128 : 32;
    constexpr std::uint32_t kBlockBytes = 64 * 128;
    const std::uint64_t a =
        ptx::matrix_at(stages.a(at.stage) + warpgroup * (Tile::kBlocks * kBlockBytes), 0);
    const std::uint64_t b = ptx::matrix_at(stages.b(at.stage), Tile::kK * 128);
#pragma unroll
    for (int step = 0; step < Tile::kK / 16; ++step) {
#pragma unroll
      for (int block = 0; block < Tile::kBlocks; ++block) {
        ptx::multiply<Element, Tile::kRowMajorB>(
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
  __device__ void run(Accumulators& sums, int stages_of_k) {
    int before = 0;
    for (int k = 0; k < stages_of_k; ++k) {
      ptx::barrier_wait(stages.full(at.stage), at.parity);
#pragma unroll
      for (int block = 0; block < Tile::kBlocks; ++block) ptx::hold(sums[block]);
      ptx::begin_products();
      multiply_stage(sums, k == 0);
      ptx::commit_products();
      ptx::wait_products<1>();
      if (k > 0) release(before);
      before = at.stage;
      at.advance();
    }
    ptx::wait_products<0>();
#pragma unroll
    for (int block = 0; block < Tile::kBlocks; ++block) ptx::hold(sums[block]);
    release(before);
  }
};

}  // namespace tutti
