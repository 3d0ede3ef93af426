// The shape of collectives whose ranks put in or get a piece each, as their bodies see it: in
// bytes, whatever the elements are.
#pragma once

#include "transport/team.hpp"

namespace tutti {

// Of the larger side: pieces lie one behind the other there, in the order of the ranks.
TUTTI_BODY std::size_t piece_of(const Work& work) {
  return work.count / static_cast<std::size_t>(work.ranks);
}

// Which rank comes `step` + 1 places on: the next one first, this one last.
TUTTI_BODY int rank_behind(const Work& work, int step) {
  const int rank = work.rank + 1 + step;
  return rank < work.ranks ? rank : rank - work.ranks;
}

// So much of each piece goes through staging in one pass, which holds a slot for every rank. All of
// it where peers reach the buffers.
TUTTI_BODY std::size_t slot_bytes(const Work& work) {
  const std::size_t piece = piece_of(work);
  const std::size_t fits = work.staging_bytes / static_cast<std::size_t>(work.ranks) / 16 * 16;
  const bool staged = work.stage_input || work.stage_output;
  if (!staged || fits >= piece) return piece;
  const std::size_t passes = (piece + fits - 1) / fits;
  return ((piece + passes - 1) / passes + 15) / 16 * 16;
}

}  // namespace tutti
