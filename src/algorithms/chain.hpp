// A message that goes along a chain of ranks, in chunks: broadcast/ring from the root to the rank
// previous to it, reduce/ring from the rank next to the root to the root. That is a ring without
// one of its links.
//
// Every block is a chain of its own for its part of the message, which is cut into chunks
// (ring_cut.hpp, chunk_moves.hpp).
//
//   barrier         every rank has begun, and is done with its slots of the operation before
//   for each chunk  the first rank sends it; the others wait for it, add to it or keep it, and send
//                   it on; the last one keeps it
//
// A rank waits for a chunk from the previous rank, and for a free slot at the next one: for nothing
// else. While a chunk is passed on, the next one arrives. So all links are busy once the first
// chunk has reached the last rank.
//
// All ranks count the same number of chunks, also those that only send or only receive, so their
// epochs stay alike.
#pragma once

#include "algorithms/chunk_moves.hpp"
#include "algorithms/ring_cut.hpp"

namespace tutti {

template <ChunkWork kDoes, class Reduction, class Team>
class ChainBlock {
 public:
  using T = typename Reduction::Element;

  TUTTI_BODY ChainBlock(Team& team, const KernelArgs& work)
      : cut_(work, work.count, team.block(), sizeof(T)),
        moves_(team, work),
        links_(work.ranks - 1),
        place_(on_ring(work.rank - work.root - (kDoes.adds ? 1 : 0), work.ranks)) {}

  // There are no pieces.
  static TUTTI_BODY constexpr std::size_t piece_bytes() { return 0; }

  TUTTI_BODY Outcome run() {
    for (int k = 0; k < cut_.partitions * kRingLead; ++k) {
      if (take_on(cut_.chunk(0, 1, 0, k)) != Outcome::kDone) return Outcome::kFailed;
    }
    return Outcome::kDone;
  }

  // A rank alone: what it has is whole.
  TUTTI_BODY void run_alone() { moves_.keep_own(cut_.whole_part()); }

 private:
  TUTTI_BODY Outcome take_on(Range chunk) {
    const bool is_last = place_ == links_;
    if (place_ == 0) return moves_.begin(chunk, false);
    if constexpr (kDoes.adds) {
      return moves_.add(chunk, is_last, false);
    } else {
      return moves_.keep(kForward, chunk, !is_last);
    }
  }

  const RingCut cut_;
  ChunkMoves<kDoes, Reduction, Team> moves_;
  const int links_, place_;  // of the chain; of this rank on it
};

template <ChunkWork kDoes, class Reduction, class Team>
TUTTI_BODY Outcome go_along(Team& team, const KernelArgs& work) {
  return run_in_chunks<ChainBlock<kDoes, Reduction, Team>>(team, work);
}

}  // namespace tutti
