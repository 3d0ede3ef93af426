// Packets of a message that is dealt out to all ranks but the root, a share to each: rooted.hpp
// says why. Of one rank the root has the only share.
#pragma once

#include "algorithms/geometry.hpp"
#include "device/packets.hpp"

namespace tutti {

inline std::size_t dealt_share(const Extent& extent) {
  return ceil_div(extent.bytes, static_cast<std::size_t>(std::max(extent.ranks - 1, 1)));
}

// A slot for every other rank holds a share. That is enough for two hops, since nobody sends the
// same rank something in both. Whole tiles of the host, as in shared_packets().
inline PacketUse dealt_packets(const Extent& on_wire) {
  return {round_up(dealt_share(on_wire), 2 * KiB), on_wire.ranks - 1};
}
inline Geometry dealt_packets_geometry(const Extent& extent) {
  return push_spread(dealt_share(extent));
}

// Shares in the order of ranks, without the root, which has none among several ranks.
template <int kTileElements>
struct DealtShares {
  int root, dealers;
  Shares<kTileElements> shares;

  TUTTI_BODY explicit DealtShares(const KernelArgs& work)
      : root(work.root),
        dealers(work.ranks > 1 ? work.ranks - 1 : 1),
        shares(work.count, dealers) {}

  TUTTI_BODY Slice slices() const { return shares.slices; }
  // Of the only rank there is, its own share is said to be of the next one.
  TUTTI_BODY int rank_of(int index) const { return index < root ? index : index + 1; }
  TUTTI_BODY TileAt of_index(int index, Slice slice) const { return shares.tile(index, slice); }
  // Of no elements at the root.
  TUTTI_BODY TileAt tile(int rank, Slice slice) const {
    if (rank == root) return {0, 0};
    return shares.tile(rank < root ? rank : rank - 1, slice);
  }
};

}  // namespace tutti
