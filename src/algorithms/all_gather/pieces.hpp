// The shape of all_gather as its bodies see it: in bytes, whatever the elements are.
#pragma once

#include "transport/team.hpp"

namespace tutti {

// What every rank puts in; rank r's is to lie at r * piece of every output.
TUTTI_BODY std::size_t piece_of(const Work& work) {
  return work.count / static_cast<std::size_t>(work.ranks);
}

// So much of each rank's piece goes through staging in one pass, which holds a slot for every rank.
// All of it where peers reach the outputs.
TUTTI_BODY std::size_t slot_bytes(const Work& work) {
  const std::size_t piece = piece_of(work);
  const std::size_t fits = work.staging_bytes / static_cast<std::size_t>(work.ranks) / 16 * 16;
  if (!work.stage_output || fits >= piece) return piece;
  const std::size_t passes = (piece + fits - 1) / fits;
  return ((piece + passes - 1) / passes + 15) / 16 * 16;
}

}  // namespace tutti
