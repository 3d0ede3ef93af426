// What rows of pieces of any lengths have in common. An extent is that of as many pieces as there
// are ranks, each as long as the longest may be.
#pragma once

#include "algorithms/moving.hpp"

namespace tutti {

// Of ranks that tell each other counts.
inline Geometry counted_geometry(const Extent& extent) {
  Geometry geometry = push_pieces_geometry(extent);
  geometry.blocks = std::min(geometry.blocks, kCountBlocks);
  return geometry;
}

// A slot for every other rank holds a piece, and behind it how long that is: one of the host's
// tiles as packets.
inline PacketUse packets_of_counted_pieces(const Extent& on_wire) {
  return {round_up(share_of(on_wire) + 2 * KiB, 256), on_wire.ranks - 1};
}

}  // namespace tutti
