// The tiles of C that the kernel is compiled for. A block computes one tile at a time; two blocks
// next to each other in M form a cluster and load the B that they share once.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace tutti {

struct MatmulTile {
  std::string_view name;  // "128x256"
  int m = 0, n = 0;       // rows and columns of C
  int stages = 0;         // of A and B in shared memory
};

inline constexpr int kMatmulTileK = 64;  // elements of K in a stage
inline constexpr int kMatmulCluster = 2;

// Wider tiles read less of A and B per multiplication; narrower ones fill waves that wide ones do
// not.
inline constexpr std::array<MatmulTile, 11> kMatmulTiles = {{
    {"128x256", 128, 256, 4},
    {"256x128", 256, 128, 4},
    {"128x240", 128, 240, 4},
    {"128x224", 128, 224, 4},
    {"128x208", 128, 208, 4},
    {"128x192", 128, 192, 5},
    {"128x176", 128, 176, 5},
    {"128x160", 128, 160, 5},
    {"128x144", 128, 144, 5},
    {"128x128", 128, 128, 6},
    {"128x112", 128, 112, 6},
}};

// Of A and B in a stage, in 16-bit elements. TMA brings a row-major B in squares of 64 x 64.
constexpr int matmul_stage_bytes(int rows, int columns, bool row_major_b) {
  constexpr int kSquare = 64;
  const int loaded = row_major_b ? (columns + kSquare - 1) / kSquare * kSquare : columns;
  return (rows + loaded) * kMatmulTileK * 2;
}

// How C is cut: its first rows into tiles of one width, the others into narrower ones, which the
// last wave has room for.
struct MatmulTiling {
  const MatmulTile* tile = nullptr;
  const MatmulTile* narrow = nullptr;  // as many rows as `tile`; null: all rows are `tile`'s
  int wide_rows = 0;                   // of clusters, that `tile` has
  friend bool operator==(const MatmulTiling&, const MatmulTiling&) = default;
};

constexpr std::array<std::string_view, kMatmulTiles.size()> matmul_tile_names() {
  std::array<std::string_view, kMatmulTiles.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kMatmulTiles[i].name;
  return names;
}

// Blocks of a cluster: where all rows are in one tile, a second block would have none.
constexpr int cluster_of(const MatmulTile& tile, std::size_t m) {
  return m <= static_cast<std::size_t>(tile.m) ? 1 : kMatmulCluster;
}

// The first row of C that is not in wide tiles, of `m`.
constexpr int narrow_from_row(const MatmulTiling& tiling, std::size_t m) {
  return tiling.wide_rows * tiling.tile->m * cluster_of(*tiling.tile, m);
}

}  // namespace tutti
