// The gate of a matmul whose A arrives while it runs, as the kernel is told. Host and device.
#pragma once

#include "matmul/kernel/pull.hpp"
#include "matmul/kernel/steps.hpp"
#include "matmul/kernel/work.hpp"

namespace tutti {

// The rows before the own shard, the own shard, and the rows after it, where the own shard is read
// from a matrix of its own. Each part begins a new row of tiles, since no box of TMA can have rows
// of two matrices. This costs at most two more rows of blocks' tiles, and none where the own shard
// begins and ends at multiples of a tile. Shards within a part are not kept apart: a tile that has
// rows of several waits for all of them. A grid per shard would cost a row of tiles for each.
struct RowParts {
  int end[3] = {};
  int first_block[3] = {};  // of blocks' rows of tiles

  TUTTI_ORDER_INLINE int part_of(int block_row) const {
    return (block_row >= first_block[1] ? 1 : 0) + (block_row >= first_block[2] ? 1 : 0);
  }
  TUTTI_ORDER_INLINE TileRows rows(int block_row, int tile_rows) const {
    const int part = part_of(block_row);
    const int begin = part == 0 ? 0 : end[part - 1];
    return {begin + (block_row - first_block[part]) * tile_rows, end[part]};
  }
  // Whether a tile that begins in this row has rows of the own shard alone.
  TUTTI_ORDER_INLINE bool in_own(int row) const { return row >= end[0] && row < end[1]; }
};

struct ArrivalGate {
  static constexpr bool kWaits = true;
  using State = FollowingSteps;
  using Seen = GateState;
  using Cursor = SegmentedOrder::Cursor;

  TensorMap own = {};  // the own shard, where it has a part
  SegmentedOrder sweep;
  RowParts parts;
  ArrivalChunks chunks;
  ArrivalWaits waits;
  ArrivalPull pulled;
  const ReplayedArrival* replayed = nullptr;
  int replays = 0;
  int rounds_of_tries = 1;

  TUTTI_ORDER_INLINE int tiles(const OwnMatmulArguments& /*arguments*/) const {
    return sweep.count();
  }
  TUTTI_ORDER_INLINE TilePlace place(const OwnMatmulArguments& /*arguments*/, int index,
                                     Cursor& cursor) const {
    return sweep.at(index, cursor);
  }
  TUTTI_ORDER_INLINE TileRows rows(const OwnMatmulArguments& /*arguments*/, int block_row,
                                   int tile_rows) const {
    return parts.rows(block_row, tile_rows);
  }
  TUTTI_ORDER_INLINE SourceOfA source(const OwnMatmulArguments& arguments, int row) const {
    if (parts.in_own(row)) return {own, row - parts.end[0]};
    return {arguments.a, row};
  }
  TUTTI_ORDER_INLINE int patience() const { return rounds_of_tries; }
  TUTTI_ORDER_INLINE int k_group(const OwnMatmulArguments& arguments) const {
    return arguments.stages_of_k * kMatmulTileK;
  }
  TUTTI_ORDER_INLINE int pullers() const { return 0; }
  // Who waits. Whole chunks come rarely, and polls of all SMs would slow the copy engines that
  // bring them; k-groups come often.
  TUTTI_ORDER_INLINE int steps_ahead() const { return chunks.k_groups == 1 ? 1 : 2; }
  TUTTI_ORDER_INLINE unsigned pause_ns() const { return chunks.k_groups == 1 ? 1000 : 64; }
  // The flag of the word that lets pullers begin.
  TUTTI_ORDER_INLINE int go_flag() const {
    return pulled.groups.shards * chunks.chunks * chunks.k_groups;
  }
#ifdef __CUDACC__
  __device__ void open(State& state, const StepWord& word) const;
  __device__ bool wait(Seen& seen, GroupOfRows rows) const;
  __device__ void replay() const;
  __device__ void pull() const {}
#endif
};

// The same where A comes by k-groups, or pullers bring it. A kernel of its own: the one for chunks
// took 3 to 5 % longer with this code in it.
struct KGroupGate : ArrivalGate {
  TUTTI_ORDER_INLINE int k_group(const OwnMatmulArguments& /*arguments*/) const {
    return chunks.k_group;
  }
  TUTTI_ORDER_INLINE int pullers() const { return pulled.pullers; }
#ifdef __CUDACC__
  __device__ void pull() const;
#endif
};
static_assert(sizeof(KGroupGate) == sizeof(ArrivalGate));
static_assert(sizeof(OwnMatmulArguments) + sizeof(ArrivalGate) <= 4096);

}  // namespace tutti
