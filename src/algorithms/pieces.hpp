// The shape of collectives whose ranks put in or get a piece each, as their bodies see it: in
// elements, which are bytes where bits are moved.
#pragma once

#include "device/team.hpp"

namespace tutti {

// Of the larger side: pieces lie one behind the other there, in the order of the ranks.
TUTTI_BODY std::size_t piece_of(const KernelArgs& work) {
  return work.count / static_cast<std::size_t>(work.ranks);
}

// Which rank comes `step` + 1 places on: the next one first, this one last.
TUTTI_BODY int rank_behind(const KernelArgs& work, int step) {
  const int rank = work.rank + 1 + step;
  return rank < work.ranks ? rank : rank - work.ranks;
}

// So much of each piece goes through staging in one pass, which has so many slots of it: whole
// vectors, so that all slots begin with one. A slot may be a little longer than the piece.
TUTTI_BODY std::size_t slot_of(const KernelArgs& work, int slots, std::size_t element_bytes) {
  const std::size_t piece = piece_of(work), unit = 16 / element_bytes;
  if (piece == 0) return 0;
  const std::size_t fits = work.staging_bytes / (static_cast<std::size_t>(slots) * 16) * unit;
  const std::size_t passes = (piece + fits - 1) / fits;
  return ((piece + passes - 1) / passes + unit - 1) / unit * unit;
}

// Of bytes: a slot for every rank. All of a piece where peers reach the buffers.
TUTTI_BODY std::size_t slot_bytes(const KernelArgs& work) {
  const bool staged = work.stage_input || work.stage_output;
  return staged ? slot_of(work, work.ranks, 1) : piece_of(work);
}

// Tile `tile` of every other rank's piece, the next rank's first.
template <class T, class Team>
TUTTI_BODY auto load_pieces(const Team& team, const KernelArgs& work, TileAt tile) {
  typename Team::Column column;
  const std::size_t piece = piece_of(work) * sizeof(T);
  TUTTI_UNROLL
  for (int step = 0; step + 1 < Team::kMaxRanks; ++step) {
    if (step >= team.others()) break;
    const auto rank = static_cast<std::size_t>(rank_behind(work, step));
    column.at[step] = team.template load_from<T>(work.input + rank * piece, tile);
  }
  return column;
}

}  // namespace tutti
