// Which part of C a block computes. Host and device.
#pragma once

#include "matmul/kernel/arguments.hpp"
#include "matmul/tiles.hpp"

namespace tutti {

// A k-group of rows of A.
struct GroupOfRows {
  int begin, end;
  int k_group = 0;
};

struct StepWord;

// Rows of A and C: those from `row` on that are before `end`. It refers to an argument, which costs
// no register while it is not needed.
struct TileRows {
  int row;
  const int& end;
};

// A tile of one block.
struct TileWork {
  const OwnProductArguments& product;
  int width;        // 0: wide, 1: narrow
  int row, column;  // of A, and of the product's B: where it begins
  const int& end;   // the first row of C that is not the tile's, however many it has
};

// Where rows of A are read: a matrix, and the row in it.
struct SourceOfA {
  const TensorMap& map;
  int row;
};

// A gate decides when rows of A may be read, where they are, and in which order tiles come. This
// gate is always open: A is there before the kernel begins.
struct OpenGate {
  static constexpr bool kWaits = false;  // a thread waits, ahead of the one that loads
  struct State {};                       // what the thread that loads remembers
  struct Seen {};                        // what the thread that waits remembers
  struct Cursor {};                      // where in the order a thread is

  TUTTI_ORDER_INLINE int tiles(const OwnMatmulArguments& arguments) const {
    return arguments.order.count();
  }
  // Indices of one cursor grow.
  TUTTI_ORDER_INLINE TilePlace place(const OwnMatmulArguments& arguments, int index,
                                     Cursor& /*cursor*/) const {
    return arguments.order[index];
  }
  // Of row `block_row` of blocks' tiles.
  TUTTI_ORDER_INLINE TileRows rows(const OwnMatmulArguments& arguments, int block_row,
                                   int tile_rows) const {
    return {block_row * tile_rows, arguments.m};
  }
  TUTTI_ORDER_INLINE SourceOfA source(const OwnMatmulArguments& arguments, int row) const {
    return {arguments.a, row};
  }
  // How often barriers' waits inside a cluster may use up their tries before they trap.
  TUTTI_ORDER_INLINE int patience() const { return 1; }
  // Columns of A that come together: of all tiles, so many are loaded behind one wait.
  TUTTI_ORDER_INLINE int k_group(const OwnMatmulArguments& arguments) const {
    return arguments.stages_of_k * kMatmulTileK;
  }
  // Of the grid's first blocks, so many bring A instead of multiplying.
  TUTTI_ORDER_INLINE int pullers() const { return 0; }
#ifdef __CUDACC__
  // In the thread that issues the loads: until the thread that waits has opened the next k-group of
  // a tile. That thread waits until rows are there; false: in vain.
  __device__ void open(State& /*state*/, const StepWord& /*word*/) const {}
  __device__ bool wait(Seen& /*seen*/, GroupOfRows /*rows*/) const { return true; }
  // Run by one thread of the grid that has nothing else to do.
  __device__ void replay() const {}
  // Run by all threads of a puller.
  __device__ void pull() const {}
#endif
};

struct ClusterTile {
  int index;  // in the order
  int rank;   // of a block in its cluster
};

template <class Tiles, class Gate>
TUTTI_ORDER_INLINE TileWork work_of(const OwnMatmulArguments& arguments, const Gate& gate,
                                    typename Gate::Cursor& cursor, ClusterTile tile) {
  const TilePlace place = gate.place(arguments, tile.index, cursor);
  int which = 0;  // the product that the column belongs to
  while (which + 1 < arguments.products &&
         place.column >= arguments.product[which + 1].first_column[place.width]) {
    ++which;
  }
  const OwnProductArguments& product = arguments.product[which];
  const TileRows rows = gate.rows(arguments, place.row * arguments.cluster + tile.rank, Tiles::kM);
  return {product, place.width, rows.row,
          (place.column - product.first_column[place.width]) * arguments.columns[place.width],
          rows.end};
}

}  // namespace tutti
