// Chunks that go around a ring of ranks: sums on their way, then what is whole. all_reduce/ring
// does both, reduce_scatter/ring the first, all_gather/ring the second.
//
// Every block is a ring of its own over its part of each rank's share, which is cut into chunks.
// All ranks go through the same steps, two chunks at each, and no step waits for the one before:
// only chunks wait, for what came of them, and for a free slot at the neighbour. With n ranks, and
// share w the one that rank r makes whole, or has:
//
//   barrier         every rank has begun, and is done with its slots of the operation before
//   adding          sends its input of share w - 1 to the next rank; adds its input to what came of
//                   share w - 2, w - 3 .. and sends the sum on; the last one, after n - 1 steps,
//                   makes the sum of share w whole: that is kept
//   spreading       sends share w, both ways maybe; keeps what comes, whole shares from both sides,
//                   and sends it on
//
// The last arrivals of a partition, kRingLead chunks of each share, meet the first step of the
// next. Sent both ways, whole shares take ceil((n-1)/2) steps forwards and floor((n-1)/2) back,
// instead of n - 1; bytes are the same.
//
// chunk_moves.hpp says where chunks lie.
//
// Cost: n - 1 hops of adding and n - 1 of spreading, or ceil((n-1)/2), behind a barrier; of each
// (n-1)/n x bytes over one link each way.
#pragma once

#include "algorithms/chunk_moves.hpp"
#include "algorithms/ring_cut.hpp"
#include "algorithms/ring_schedule.hpp"

namespace tutti {

// Where it adds or spreads, and not both, there is a piece of each rank instead of a share.
template <ChunkWork kDoes, class Reduction, class Team>
class RingBlock {
 public:
  using T = typename Reduction::Element;
  static constexpr bool kHasPieces = !(kDoes.adds && kDoes.spreads);

  TUTTI_BODY RingBlock(Team& team, const KernelArgs& work)
      : team_(team),
        ranks_(work.ranks),
        cut_(work, share_of(work), team.block(), sizeof(T)),
        moves_(team, work, kDoes.adds ? 0 : cut_.begin_of(work.rank),
               kDoes.spreads ? 0 : cut_.begin_of(work.rank)),
        whole_(kHasPieces ? work.rank : work.rank + 1),
        adding_steps_(kDoes.adds ? work.ranks - 1 : 0) {
    const int steps = kDoes.spreads ? work.ranks - 1 : 0;
    // Back through slots chunks need credit, too, unless sums have gone forwards before.
    const bool both_ways = work.ring.directions > 1 && (kDoes.adds || moves_.direct());
    reverse_steps_ = both_ways ? reverse_ring_steps(steps) : 0;
    forward_steps_ = steps - reverse_steps_;
  }

  // Of pieces that lie one behind the other: their length in bytes.
  TUTTI_BODY std::size_t piece_bytes() const { return kHasPieces ? cut_.share * sizeof(T) : 0; }

  TUTTI_BODY Outcome run() {
    const int steps = adding_steps_ + forward_steps_;
    for (int p = 0; p <= cut_.partitions; ++p) {
      for (int step = 0; step < (p < cut_.partitions ? steps : 1); ++step) {
        for (int c = 0; c < kRingLead; ++c) {
          if (p < cut_.partitions && take_step(p, step, c) != Outcome::kDone) {
            return Outcome::kFailed;
          }
          if (p > 0 && step == 0 && end_partition(p - 1, c) != Outcome::kDone) {
            return Outcome::kFailed;
          }
        }
      }
    }
    return Outcome::kDone;
  }

  TUTTI_BODY void run_alone() { moves_.keep_own(cut_.whole_part()); }

 private:
  static TUTTI_BODY std::size_t share_of(const KernelArgs& work) {
    return kHasPieces ? piece_of(work) : divided(work.count, work.ranks, 16 / sizeof(T));
  }

  TUTTI_BODY Outcome take_step(int p, int step, int c) {
    const int spread = step - adding_steps_;
    if constexpr (kDoes.adds) {
      const Range chunk = chunk_of(added_forward(whole_, step, 1), p, c);
      if (step == 0) return moves_.begin(chunk, false);
      if (spread <= 0) return add(chunk, spread == 0);
    } else {
      if (step == 0) return moves_.begin(chunk_of(whole_, p, c), reverse_steps_ > 0);
    }
    return spread_on(p, spread, c);
  }

  // What nobody waits for any more.
  TUTTI_BODY Outcome end_partition(int p, int c) {
    if constexpr (kDoes.spreads) {
      const Range last = chunk_of(spread_forward(whole_, forward_steps_), p, c);
      if (moves_.keep(kForward, last, false) != Outcome::kDone) return Outcome::kFailed;
      if (reverse_steps_ < forward_steps_) return Outcome::kDone;
      return moves_.keep(kReverse, chunk_of(spread_reverse(whole_, reverse_steps_), p, c), false);
    } else {
      return add(chunk_of(whole_, p, c), true);
    }
  }

  TUTTI_BODY Outcome spread_on(int p, int step, int c) {
    // A chunk that is sent forwards tells that the one which came back in the same step was taken,
    // so it is waited for before another goes back.
    std::byte* from = nullptr;
    if (team_.slot_from(kForward, from) != Outcome::kDone) return Outcome::kFailed;
    if (step <= reverse_steps_) {
      const Range other = chunk_of(spread_reverse(whole_, step), p, c);
      if (moves_.keep(kReverse, other, step < reverse_steps_) != Outcome::kDone)
        return Outcome::kFailed;
    }
    return moves_.keep(kForward, chunk_of(spread_forward(whole_, step), p, c), true);
  }

  TUTTI_BODY Outcome add(Range chunk, bool is_whole) {
    return moves_.add(chunk, is_whole, is_whole && reverse_steps_ > 0);
  }

  TUTTI_BODY Range chunk_of(int share, int p, int c) const {
    return cut_.chunk(share, ranks_, p, c);
  }

  Team& team_;
  const int ranks_;
  const RingCut cut_;
  ChunkMoves<kDoes, Reduction, Team> moves_;
  const int whole_;  // which share is whole here, and adding is over
  const int adding_steps_;
  int forward_steps_, reverse_steps_;  // of spreading
};

template <ChunkWork kDoes, class Reduction, class Team>
TUTTI_BODY Outcome go_around(Team& team, const KernelArgs& work) {
  return run_in_chunks<RingBlock<kDoes, Reduction, Team>>(team, work);
}

}  // namespace tutti
