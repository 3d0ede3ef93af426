// How long the pieces of an operation are, where ranks have as much as they like.
//
// What the host is told of them comes with the operation. What it is not told, the ranks tell each
// other: each publishes what it has for everybody, and knows behind a barrier who has what for
// whom.
#pragma once

#include "device/team.hpp"

namespace tutti {

struct PieceCounts {
  enum class Kind : std::uint8_t {
    kSame,   // a rank has the same for everybody: all_gather_v
    kEach,   // and of its own for each: all_to_all_v
    kParts,  // all ranks have pieces alike: reduce_scatter_v
  };
  Kind kind;
  // Every rank was told of all pieces alike, of which the operation's signature tells.
  bool agreed;
  // The host was told nothing: `given` was, as elements of the call, in memory of this rank's.
  const std::size_t* given;
  std::size_t* found;  // `ranks` of them, likewise: what came from each; null: nobody asks
  std::uint32_t bits;  // an element of the call is 1 << bits of KernelArgs::count
  // By rank, as elements of KernelArgs::count: what goes there, and what comes from there. Of
  // kParts, the piece of each, in both.
  Range sent[kMaxRanks], taken[kMaxRanks];

  TUTTI_BODY bool is_on_device() const { return given != nullptr; }
  // Elements of the call that this rank has for `rank`.
  TUTTI_BODY std::size_t sent_to(int rank) const {
    if (is_on_device()) return given[kind == Kind::kSame ? 0 : rank];
    return sent[rank].count >> bits;
  }
};

}  // namespace tutti
