// How buffers are passed to a body that runs without a communicator around it.
#pragma once

#include <algorithm>
#include <string_view>

#include "algorithms/catalogue.hpp"

namespace tutti::test {

enum class Buffers : std::uint8_t { kDirect, kStaged, kInPlace };
inline constexpr Buffers kAllBuffers[] = {Buffers::kDirect, Buffers::kStaged, Buffers::kInPlace};

inline std::string_view to_string(Buffers buffers) {
  switch (buffers) {
    case Buffers::kDirect:
      return "direct";
    case Buffers::kStaged:
      return "staged";
    case Buffers::kInPlace:
      break;
  }
  return "in_place";
}

// The library stages in-place operations of rows that cannot run them directly: of those, what is
// in place for the row itself still runs where only outputs are staged. Nothing is staged of rows
// whose buffers no peer touches.
inline bool runs(const Algorithm& row, Buffers buffers) {
  const bool touched = row.peers_read_input || row.peers_write_output;
  if (buffers == Buffers::kStaged) return touched;
  if (touched && root_side(row.collective) == RootSide::kInput && row.peers_read_input)
    return false;
  if (buffers == Buffers::kInPlace && !runs_in_place(row.collective)) return false;
  return buffers != Buffers::kInPlace || !row.in_place_needs_staging || !row.peers_read_input;
}

// Whether what peers touch lies in staging while `row` runs so.
inline bool is_staged(const Algorithm& row, Buffers buffers) {
  return buffers == Buffers::kStaged ||
         (buffers == Buffers::kInPlace && row.in_place_needs_staging);
}

// The root of one of several operations in a row, where the collective has one: not always the same
// rank. In the first one rank 0 is the root of a reduction alone, and in the second one rank 1 is
// the root where a root sends, and is none where it receives.
inline int root_of(Collective collective, int operation, int ranks) {
  const int last = ranks - 1;
  const int first = collective == Collective::kReduce ? 0 : last;
  const int second = root_side(collective) == RootSide::kInput ? 1 : 0;
  const int third = collective == Collective::kReduce ? last : 0;
  const int turns[] = {first, second, third};
  return has_root(collective) ? turns[operation % 3] % ranks : 0;
}
inline bool has_input(Collective collective, int rank, int root) {
  return root_side(collective) != RootSide::kInput || rank == root;
}
inline bool has_output(Collective collective, int rank, int root) {
  return root_side(collective) != RootSide::kOutput || rank == root;
}

// Some rows are for two ranks alone.
inline int ranks_for(const Algorithm& row, int wanted) {
  return std::min(wanted, row.max_ranks_host);
}

}  // namespace tutti::test
