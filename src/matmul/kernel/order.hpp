// In which order a persistent grid computes its tiles. An order is a function from 0 .. count() - 1
// to the places of tiles; cluster c of n computes c, c + n, c + 2n, ...
#pragma once

#ifdef __CUDACC__
#define TUTTI_ORDER_INLINE __host__ __device__ __forceinline__
#else
#define TUTTI_ORDER_INLINE inline
#endif

namespace tutti {

struct TilePlace {
  int row = 0, column = 0;  // in tiles of a cluster: both its blocks are in one row
  int width = 0;            // 0: wide, 1: narrow; columns count tiles of this width
};

// Groups of rows, each swept over all columns. What runs at one time is then about as high as it is
// wide, so that its A and B stay in the L2.
struct GroupedOrder {
  int rows = 0, columns = 0;
  int group = 1;  // rows

  TUTTI_ORDER_INLINE int count() const { return rows * columns; }
  TUTTI_ORDER_INLINE TilePlace operator[](int index) const {
    const int first = index / (group * columns) * group;
    const int within = index - first * columns;
    const int height = rows - first < group ? rows - first : group;
    const int column = within / height;
    return {first + within - column * height, column};
  }
};

// First all wide tiles, then the narrow ones, whose rows come after those of the wide.
struct TwoWidthsOrder {
  GroupedOrder wide, narrow;

  TUTTI_ORDER_INLINE int count() const { return wide.count() + narrow.count(); }
  TUTTI_ORDER_INLINE TilePlace operator[](int index) const {
    if (index < wide.count()) return wide[index];
    const TilePlace place = narrow[index - wide.count()];
    return {wide.rows + place.row, place.column, 1};
  }
};

// Rows that come one after another, and are swept before the next ones begin.
struct RowSegment {
  int first_tile = 0;  // of the order
  int first_row = 0;   // in the order of rows
  GroupedOrder sweep;
};

// Segments of rows, where the rows come from `rotation` on and then from 0 on. The first
// `wide_rows` of this order are in wide tiles, wherever in C they are: so the narrow tiles are the
// order's last, and fill its last wave as they do without a rotation.
struct SegmentedOrder {
  static constexpr int kMostSegments = 18;

  RowSegment segment[kMostSegments];
  int segments = 0;
  int tiles = 0;
  int rows = 0, wide_rows = 0;
  int rotation = 0;  // less than rows

  // Where one thread is, whose indices grow. Between two tiles nothing multiplies, so that a search
  // from the first segment on would take time from every tile.
  struct Cursor {
    int segment = 0;
  };

  TUTTI_ORDER_INLINE int count() const { return tiles; }
  TUTTI_ORDER_INLINE TilePlace at(int index, Cursor& cursor) const {
    int which = cursor.segment;
    while (which + 1 < segments && index >= segment[which + 1].first_tile) ++which;
    cursor.segment = which;
    const RowSegment& from = segment[which];
    const TilePlace place = from.sweep[index - from.first_tile];
    const int position = from.first_row + place.row;
    const int turned = position < rows - rotation ? position : position - rows;
    return {turned + rotation, place.column, position < wide_rows ? 0 : 1};
  }
};

// The shards of A in the order in which they arrive: position 0 is the own one, and the others are
// in groups of about as many shards.
struct ShardGroups {
  int shards = 1;
  int groups = 1;  // at least 1

  // The position at which group 0, 1, ... begins; that of group `groups` is behind the last.
  TUTTI_ORDER_INLINE int first(int group) const { return 1 + group * (shards - 1) / groups; }
  // Of a position above 0.
  TUTTI_ORDER_INLINE int at(int position) const {
    int group = 0;
    while (group + 1 < groups && first(group + 1) <= position) ++group;
    return group;
  }
};

}  // namespace tutti
