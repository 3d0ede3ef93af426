// One thread that loads A and B of all tiles of its block, in their order, as far ahead as the ring
// has room.
#pragma once

#include "matmul/kernel/arguments.hpp"
#include "matmul/kernel/kernels.hpp"
#include "matmul/kernel/ring.cuh"

namespace tutti {

// The product that a column of tiles belongs to.
__device__ __forceinline__ const OwnProductArguments& product_of(
    const OwnMatmulArguments& arguments, int column) {
  int index = 0;
  while (index + 1 < arguments.products && column >= arguments.product[index + 1].first_column) {
    ++index;
  }
  return arguments.product[index];
}

template <class Tile, class Gate>
struct Producer {
  const OwnMatmulArguments& arguments;
  Stages<Tile> stages;
  Gate gate;
  int rank, blocks;  // in the cluster, of it

  // B is the same for both blocks of a cluster: each loads half of it, for both.
  __device__ void load_b(const TensorMap& map, int stage, int column, int k) const {
    if constexpr (Tile::kRowMajorB) {  // a half has 32 rows of each square
      for (int square = 0; square < Tile::kSquares; ++square) {
        const std::uint32_t to = stages.b(stage) + square * (Tile::kK * 128);
        load_half(to, map, stage, {column + square * 64, k}, Tile::kK / 2);
      }
    } else {
      load_half(stages.b(stage), map, stage, {k, column}, Tile::kN / 2);
    }
  }

  // This block's half of a box of 2 * `rows` rows; without a cluster both halves.
  __device__ void load_half(std::uint32_t to, const TensorMap& map, int stage, ptx::BoxPlace from,
                            int rows) const {
    const std::uint32_t half = rows * 128;
    if (blocks == 1) {
      ptx::load_box(to, map, stages.full(stage), from);
      ptx::load_box(to + half, map, stages.full(stage), {from.x, from.y + rows});
    } else {
      ptx::load_box_to(0b11, to + rank * half, map, stages.full(stage),
                       {from.x, from.y + rank * rows});
    }
  }

  __device__ void run(int cluster, int clusters) {
    StageCursor<Tile> at{0, 1};  // the first round finds all stages empty
    for (int index = cluster; index < arguments.order.count(); index += clusters) {
      const TilePlace place = arguments.order[index];
      const OwnProductArguments& product = product_of(arguments, place.column);
      const int row = (place.row * blocks + rank) * Tile::kM;
      const int column = (place.column - product.first_column) * Tile::kN;
      gate.open(row, Tile::kM);
      for (int k = 0; k < arguments.stages_of_k; ++k) {
        ptx::barrier_wait(stages.empty(at.stage), at.parity);
        ptx::barrier_expect(stages.full(at.stage), Tile::kStageBytes);
        ptx::load_box(stages.a(at.stage), arguments.a, stages.full(at.stage), {k * Tile::kK, row});
        load_b(product.b, at.stage, column, k * Tile::kK);
        at.advance();
      }
    }
  }
};

}  // namespace tutti
