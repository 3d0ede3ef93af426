// How a column, one tile of every rank, becomes one tile: rule 4 again, see reduction.hpp.
#pragma once

#include "algorithms/reduction.hpp"

namespace tutti {

struct NoScalars {};

// A sum as elements. A divisor that is not 1 makes it an average.
template <class Reduction, int kElements>
TUTTI_BODY auto rounded(Tile<typename Reduction::Accumulator, kElements>& sum, double divisor) {
  using T = typename Reduction::Element;
  using A = typename Reduction::Accumulator;
  if (divisor != 1) {
    TUTTI_UNROLL
    for (int e = 0; e < kElements; ++e)
      sum.at[e] = static_cast<A>(sum.at[e] / static_cast<A>(divisor));
  }
  Tile<T, kElements> result;
  TUTTI_UNROLL
  for (int e = 0; e < kElements; ++e) {
    result.at[e] = from_accumulator<T>(sum.at[e]);
  }
  return result;
}

// `count` elements of each rank's tile.
template <class Reduction, class Team, class Column>
TUTTI_BODY auto reduce_column(const Team& team, const Column& column, int count, double divisor) {
  using T = typename Reduction::Element;
  using A = typename Reduction::Accumulator;
  constexpr int kElements = Team::template tile_elements<T>();

  Tile<A, kElements> sum;
  TUTTI_UNROLL
  for (int r = 0; r < Team::kMaxRanks; ++r) {
    if (r >= team.ranks()) break;
    accumulate<Reduction>(sum, team.template part_of<T>(column, r, count), r, NoScalars{});
  }

  return Team::words_of(rounded<Reduction>(sum, divisor));
}

}  // namespace tutti
