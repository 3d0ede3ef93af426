// Which part of C a block computes. Host and device.
#pragma once

#include "matmul/kernel/arguments.hpp"

namespace tutti {

// A tile of one block.
struct TileWork {
  const OwnProductArguments& product;
  int width;        // 0: wide, 1: narrow
  int row, column;  // of A, and of the product's B: where it begins
};

// Tile `index` of the order, for block `rank` of a cluster.
template <class Tiles>
TUTTI_ORDER_INLINE TileWork work_of(const OwnMatmulArguments& arguments, int index, int rank) {
  const TilePlace place = arguments.order[index];
  int which = 0;  // the product that the column belongs to
  while (which + 1 < arguments.products &&
         place.column >= arguments.product[which + 1].first_column[place.width]) {
    ++which;
  }
  const OwnProductArguments& product = arguments.product[which];
  return {product, place.width, (place.row * arguments.cluster + rank) * Tiles::kM,
          (place.column - product.first_column[place.width]) * arguments.columns[place.width]};
}

}  // namespace tutti
