// One thread that loads A and B of all tiles of its block, in their order, as far ahead as the ring
// has room.
#pragma once

#include "matmul/kernel/leader.cuh"

namespace tutti {

template <class Tiles, class Gate>
struct Producer {
  const OwnMatmulArguments& arguments;
  Stages<Tiles> stages;
  const Gate& gate;
  int rank;  // in the cluster
  StepWord word;
  StageCursor at;
  typename Gate::State state = {};

  // This block's half of a box of 2 * `rows` rows; without a cluster both halves.
  __device__ __forceinline__ void load_half(std::uint32_t to, const TensorMap& map,
                                            ptx::BoxPlace from, int rows) const {
    const std::uint32_t half = rows * 128;
    if (arguments.cluster == 1) {
      ptx::load_box(to, map, stages.full(at.stage), from);
      ptx::load_box(to + half, map, stages.full(at.stage), {from.x, from.y + rows});
    } else {
      ptx::load_box_to(0b11, to + rank * half, map, stages.full(at.stage),
                       {from.x, from.y + rank * rows});
    }
  }

  // B is the same for both blocks of a cluster: each loads half of it, for both.
  template <int kColumns>
  __device__ __forceinline__ void load_b(const TileWork& tile, int k) const {
    const TensorMap& map = tile.product.b[tile.width];
    if constexpr (Tiles::kRowMajorB) {  // a half has 32 rows of each square
#pragma unroll
      for (int square = 0; square < Tiles::squares(kColumns); ++square) {
        const std::uint32_t to = stages.b(at.stage) + square * (Tiles::kK * 128);
        load_half(to, map, {tile.column + square * 64, k}, Tiles::kK / 2);
      }
    } else {
      load_half(stages.b(at.stage), map, {k, tile.column}, kColumns / 2);
    }
  }

  // Each block of a cluster waits for its own rows, and so delays the half of B that it loads for
  // the other. Neither wait depends on the other block, so both end.
  //
  // With a width that is not known when this is compiled, tiles of a row-major B take up to a fifth
  // longer. Where the loop over k-groups was around this, registers were spilled.
  template <int kColumns>
  __device__ __forceinline__ void load_tile(const TileWork& tile) {
    const SourceOfA a = gate.source(arguments, tile.row);
    int closed = 0;  // from this column on
    for (int k = 0; k < arguments.stages_of_k * Tiles::kK; k += Tiles::kK) {
      if (Gate::kWaits && k == closed) {
        gate.open(state, word);
        closed += gate.k_group(arguments);
      }
      ptx::barrier_wait(stages.empty(at.stage), at.parity, gate.patience());
      ptx::barrier_expect(stages.full(at.stage), Tiles::stage_bytes(kColumns));
      ptx::load_box(stages.a(at.stage), a.map, stages.full(at.stage), {k, a.row});
      load_b<kColumns>(tile, k);
      at.advance();
    }
  }

  struct LoadTile {
    Producer& producer;
    const TileWork& tile;
    template <class Columns>
    __device__ __forceinline__ void operator()(Columns) const {
      producer.load_tile<Columns::value>(tile);
    }
  };

  // Each block of a cluster waits for its own rows, and so delays the half of B that it loads for
  // the other. Neither wait depends on the other block, so both end.
  __device__ void run(int cluster, int clusters) {
    typename Gate::Cursor cursor;
    for (int index = cluster; index < gate.tiles(arguments); index += clusters) {
      const TileWork tile = work_of<Tiles>(arguments, gate, cursor, {index, rank});
      Tiles::with(arguments.columns[tile.width], LoadTile{*this, tile});
    }
  }
};

}  // namespace tutti
