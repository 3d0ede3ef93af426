// What rows have in common that move a piece of each rank, most of which compute nothing.
#pragma once

#include "algorithms/geometry.hpp"

namespace tutti {

// Of those that do not: calls have the op that stands where none is named.
inline bool moves(DataType, OpKind op) { return op == OpKind::kSum; }

// As all_reduce's two_shot has it of what a rank stores to everybody.
inline Geometry stores_geometry(std::size_t bytes) {
  if (bytes <= 128 * KiB) return spread(bytes, 128, 64);
  if (bytes <= 512 * KiB) return spread(bytes, 256, 64);
  return spread(bytes, 512, kMaxBlocks);
}
inline Geometry push_pieces_geometry(const Extent& extent) {
  return stores_geometry(share_of(extent));
}

// Of blocks that store to one rank each: as many for every rank.
inline Geometry per_peer_geometry(const Extent& extent) {
  Geometry geometry = stores_geometry(extent.bytes);
  geometry.blocks = std::max(geometry.blocks / extent.ranks, 1) * extent.ranks;
  return geometry;
}
inline bool is_bound_to_peers(const Algorithm& row) { return row.geometry == per_peer_geometry; }

// A slot for every other rank holds a piece.
inline PacketUse packets_of_pieces(const Extent& on_wire) {
  return {round_up(share_of(on_wire), 256), on_wire.ranks - 1};
}

// Of kernels that move nothing: one block is enough to meet.
inline Geometry meeting_geometry(const Extent&) { return {1, 32}; }

// Of the larger side: all of it but the own piece, which is only copied.
inline double pieces_wire(int ranks) { return (ranks - 1.0) / ranks; }
inline double own_piece_local(int ranks) { return 2.0 / ranks; }
// Of a barrier, pieces that are moved, and a barrier. `narrow`: see Cost.
constexpr Cost moving_cost(double narrow = 0) {
  return {
      .steps = 5, .host_steps = 3, .wire = pieces_wire, .local = own_piece_local, .narrow = narrow};
}
// Of packets: as all_reduce's, of a piece.
inline double packets_of_pieces_local(int ranks) { return 7 + 1.0 / ranks; }

// Likewise, of packets of pieces that differ: those of the other ranks are loaded as well.
inline double packets_to_each_local(int ranks) { return 8 - 1.0 / ranks; }

}  // namespace tutti
