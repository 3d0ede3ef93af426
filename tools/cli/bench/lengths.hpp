// How long the pieces are that are measured of collectives whose ranks have as much as they like:
// 1/n, 2/n and so on up to n/n of the longest one, in whole elements. Every rank sends and takes
// each of these lengths once, where it has a piece of its own for each.
#pragma once

#include <vector>

#include "algorithms/collective.hpp"

namespace tutti::cli {

struct PieceLengths {
  std::vector<std::size_t> sent, taken;  // elements, by rank

  PieceLengths() = default;
  PieceLengths(Collective collective, std::size_t longest, int rank, int ranks) {
    for (int r = 0; r < ranks; ++r) {
      sent.push_back(length(collective, longest, rank, r, ranks));
      taken.push_back(length(collective, longest, r, rank, ranks));
    }
    if (reduces(collective)) taken = sent;
  }

  static std::size_t length(Collective collective, std::size_t longest, int from, int to,
                            int ranks) {
    const int step = collective == Collective::kAllToAllV ? (from + to) % ranks
                     : reduces(collective)                ? to
                                                          : from;
    return longest * static_cast<std::size_t>(step + 1) / static_cast<std::size_t>(ranks);
  }
  static std::size_t before(const std::vector<std::size_t>& lengths, int rank) {
    std::size_t sum = 0;
    for (int r = 0; r < rank; ++r) sum += lengths[static_cast<std::size_t>(r)];
    return sum;
  }
  // In elements.
  Sides sides(Collective collective, int rank) const {
    const auto own = static_cast<std::size_t>(rank);
    const auto all = static_cast<int>(sent.size());
    if (reduces(collective)) return {before(sent, all), sent[own], before(sent, rank)};
    if (collective == Collective::kAllToAllV) return {before(sent, all), before(taken, all), 0};
    return {sent[own], before(taken, all), before(taken, rank)};
  }
};

// Of what even pieces would be, as long as the longest.
constexpr double share_of_lengths(int ranks) { return (ranks + 1.0) / (2.0 * ranks); }

}  // namespace tutti::cli
