// How long the pieces are that are measured of collectives whose ranks have as much as they like:
// 1/n, 2/n and so on up to n/n of the longest one, in whole elements. Every rank sends and takes
// each of these lengths once, where it has a piece of its own for each.
#pragma once

#include "operation/lengths.hpp"

namespace tutti::cli {

// Of what goes from one rank to another, or of one rank's piece.
inline std::size_t piece_length(Collective collective, std::size_t longest, int from, int to,
                                int ranks) {
  const int step = collective == Collective::kAllToAllV ? (from + to) % ranks
                   : reduces(collective)                ? to
                                                        : from;
  return longest * static_cast<std::size_t>(step + 1) / static_cast<std::size_t>(ranks);
}

inline Lengths piece_lengths(Collective collective, std::size_t longest, int rank, int ranks) {
  Lengths lengths;
  for (int r = 0; r < ranks; ++r) {
    lengths.sent.push_back(piece_length(collective, longest, rank, r, ranks));
    lengths.taken.push_back(piece_length(collective, longest, r, rank, ranks));
  }
  if (reduces(collective)) lengths.taken = lengths.sent;
  return lengths;
}

// Of what even pieces would be, as long as the longest.
constexpr double share_of_lengths(int ranks) { return (ranks + 1.0) / (2.0 * ranks); }

}  // namespace tutti::cli
