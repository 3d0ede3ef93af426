// What becomes of each tile of a reduction before anybody is sent it.
#pragma once

#include "device/team.hpp"

namespace tutti {

// The reduction is the result.
struct NoEpilogue {
  // Whether the next kernel may be made ready while this one still runs.
  static constexpr bool kTriggers = true;
  struct Operand {};

  // What a tile is combined with, loaded before the tile is there.
  template <class T, class Team>
  static TUTTI_BODY Operand load(const Team&, const KernelArgs&, TileAt) {
    return {};
  }
  // `reduced`: elements, or the words that they are.
  template <class T, class Team, class Reduced>
  static TUTTI_BODY const Reduced& apply(const Reduced& reduced, Operand) {
    return reduced;
  }
};

}  // namespace tutti
