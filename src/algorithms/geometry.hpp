// Grids that rows of several collectives have in common.
#pragma once

#include <algorithm>

#include "algorithms/catalogue.hpp"
#include "base/units.hpp"
#include "device/kernel_args.hpp"

namespace tutti {

inline std::size_t share_of(const Extent& extent) {
  return ceil_div(extent.bytes, static_cast<std::size_t>(extent.ranks));
}

// A 16-byte tile per thread, in blocks of `threads`, at most `most` of them.
inline Geometry spread(std::size_t bytes, int threads, int most) {
  const std::size_t tiles = std::max<std::size_t>(ceil_div(bytes, 16), 1);
  const std::size_t blocks = ceil_div(tiles, static_cast<std::size_t>(threads));
  return {static_cast<int>(std::min<std::size_t>(blocks, static_cast<std::size_t>(most))), threads};
}

// Of packets. Measured on 2x H200: a thread has one tile as long as there are blocks for it; with
// two of them it has to wait twice.
inline Geometry push_spread(std::size_t bytes) {
  if (bytes <= 32 * KiB) return spread(bytes, 128, kMaxBlocks);
  return spread(bytes, bytes <= 512 * KiB ? 256 : 512, kMaxBlocks);
}

// Of packets that hold the message, and of those that hold a share of it.
inline Geometry whole_packets_geometry(const Extent& extent) { return push_spread(extent.bytes); }
inline Geometry shared_packets_geometry(const Extent& extent) {
  return push_spread(share_of(extent));
}

// Of what a rank reduces of everybody's. Measured on 8x H200 (docs/internals/performance_notes.md):
// small blocks while that is little, since a barrier waits for a whole block; more threads per
// block once bandwidth counts.
inline Geometry two_shot_geometry(const Extent& extent) {
  const std::size_t share = share_of(extent);
  if (share <= 128 * KiB) return spread(share, 128, 64);
  if (share <= 512 * KiB) return spread(share, 256, 64);
  return spread(share, extent.ranks > 4 ? 256 : 512, kMaxBlocks);
}

// Of bulk copies. Measured on 2 H200s with a bare program: as many blocks reach 85 % of what 128 do
// that store.
inline Geometry bulk_geometry(const Extent& extent) { return spread(share_of(extent), 512, 32); }

// Measured on 2 and 4 H200s: all blocks, and chunks that are long to what telling of them takes,
// about 2 us. A warp more than moves tiles tells neighbours.
inline Geometry ring_geometry(const Extent& extent) {
  Geometry geometry = spread(share_of(extent), 512, kMaxBlocks);
  geometry.chunk_bytes = 64 * KiB;
  return geometry;
}

// The same of a chain. All its links are busy once the first chunk of each block has reached its
// end. So with more than one link a block has shorter chunks: eight of them, but none below 4 KiB
// or above 16 KiB. Measured on 4 H200s (docs/internals/performance_notes.md).
inline Geometry chain_geometry(const Extent& extent) {
  Geometry geometry = spread(extent.bytes, 512, kMaxBlocks);
  const std::size_t eighth = round_up(extent.bytes / kMaxBlocks / 8, KiB);
  geometry.chunk_bytes =
      extent.ranks == 2 ? 64 * KiB : std::clamp<std::size_t>(eighth, 4 * KiB, 16 * KiB);
  return geometry;
}

// A slot for every other rank holds the message.
inline PacketUse whole_packets(const Extent& on_wire) {
  return {round_up(on_wire.bytes, 256), on_wire.ranks - 1};
}

// Two slots for every other rank, one for what is to be reduced and one for results, hold a share:
// a whole number of the host's tiles as packets, the largest ones.
inline PacketUse shared_packets(const Extent& on_wire) {
  return {round_up(share_of(on_wire), 2 * KiB), 2 * (on_wire.ranks - 1)};
}

// Of libraries, which choose their own.
inline Geometry library_geometry(const Extent&) { return {0, 0}; }

}  // namespace tutti
