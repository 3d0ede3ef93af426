// How buffers are passed to a body that runs without a communicator around it.
#pragma once

#include <algorithm>
#include <string_view>

#include "algorithms/catalogue.hpp"
#include "algorithms/moving.hpp"

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
  const bool in_place = runs_in_place(row.collective) && !row.splits_rows;
  if (buffers == Buffers::kInPlace && !in_place) return false;
  return buffers != Buffers::kInPlace || !row.in_place_needs_staging || !row.peers_read_input;
}

// Whether what peers touch lies in staging while `row` runs so.
inline bool is_staged(const Algorithm& row, Buffers buffers) {
  return buffers == Buffers::kStaged ||
         (buffers == Buffers::kInPlace && row.in_place_needs_staging);
}

// The root of one of several operations in a row, where the collective has one. One rank again and
// again, and another one in between: what an operation leaves undone, the next one of the same root
// meets, or of the rank behind it, or the next but one, which has the same slots of packets. In the
// first one rank 0 is the root of a reduction alone; in the second one rank 1 is the root where a
// root sends, and is none where it receives.
inline int root_of(Collective collective, int operation, int ranks) {
  if (!has_root(collective)) return 0;
  const int last = ranks - 1;
  if (collective == Collective::kReduce) return operation % 3 == 2 ? last : 0;
  const int sends[] = {1 % ranks, 1 % ranks, last, 1 % ranks, 0},
            receives[] = {last, 0, 0, 0, last};
  return root_side(collective) == RootSide::kInput ? sends[operation % 5] : receives[operation % 5];
}
inline bool has_input(Collective collective, int rank, int root) {
  return root_side(collective) != RootSide::kInput || rank == root;
}
inline bool has_output(Collective collective, int rank, int root) {
  return root_side(collective) != RootSide::kOutput || rank == root;
}

// How long the rows of a matrix are, of so many elements in all, that a row of the catalogue splits
// among so many ranks: there are three of them, or two, or one. 0: it splits none.
inline std::size_t row_length(const Algorithm& row, std::size_t count, int ranks) {
  if (!row.splits_rows) return 0;
  const std::size_t piece = count / static_cast<std::size_t>(ranks);
  return count / (piece % 3 == 0 ? 3 : piece % 2 == 0 ? 2 : 1);
}

// Where in the message element i of rank `rank`'s output is reduced, which begins at `first` where
// no rows are split.
inline std::size_t in_message(const Algorithm& row, std::size_t count, int rank, int ranks,
                              std::size_t first, std::size_t i) {
  const std::size_t length = row_length(row, count, ranks);
  if (length == 0) return first + i;
  const std::size_t columns = length / static_cast<std::size_t>(ranks);
  if (columns == 0) return i;
  return i / columns * length + static_cast<std::size_t>(rank) * columns + i % columns;
}

// Whether passes take turns with two halves of staging: what they push goes there, whatever the
// buffers are, or where outputs are staged.
inline bool stages_in_halves(const Algorithm& row) {
  return row.pushes_through_staging || is_bound_to_peers(row);
}

// Some rows are for two ranks alone.
inline int ranks_for(const Algorithm& row, int wanted) {
  return std::min(wanted, row.max_ranks_host);
}

}  // namespace tutti::test
