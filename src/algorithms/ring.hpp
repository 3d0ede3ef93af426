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
// Chunks lie where they belong in the output where that holds all shares, sums that are not whole
// yet as well: nobody needs the place before. There is one for each, so nobody waits for room.
// Elsewhere, and where neighbours do not reach the outputs, they go through slots in staging, for
// which senders need credit. Inputs are read by their owners alone: any will do.
//
// Cost: n - 1 hops of adding and n - 1 of spreading, or ceil((n-1)/2), behind a barrier; of each
// (n-1)/n x bytes over one link each way.
#pragma once

#include "algorithms/columns.hpp"
#include "algorithms/pieces.hpp"
#include "algorithms/ring_schedule.hpp"

namespace tutti {

// Chunks of one step: as many are under way while the first of them is waited for. No more than
// half the slots: then whatever is waited for is of an earlier step.
inline constexpr int kRingLead = RingSlots::kPerBlock / 2;

// What goes around. Rows that do one of the two have a piece of each rank instead of a share.
struct RingTurns {
  bool adds, spreads;
};

// How a block's part of the message is cut, in elements. The same on all ranks.
struct RingCut {
  std::size_t count, share, part, piece;
  int block, partitions;

  TUTTI_BODY RingCut(const KernelArgs& work, std::size_t share_length, int block_index,
                     std::size_t element_bytes)
      : count(work.count), share(share_length), block(block_index) {
    const std::size_t unit = 16 / element_bytes;
    part = divided(share, work.blocks, unit);
    const std::size_t most = work.ring.chunk_bytes / element_bytes * kRingLead;
    partitions = part > most ? static_cast<int>((part + most - 1) / most) : 1;
    piece = divided(part, partitions * kRingLead, unit);
  }

  // All that a rank alone has for this block.
  TUTTI_BODY Range whole_part() const {
    const std::size_t first = least(part * static_cast<std::size_t>(block), count);
    return {first, least(first + part, count) - first};
  }

  // Chunk `chunk` of a partition of share `share_of`, which is taken modulo the number of ranks.
  TUTTI_BODY Range chunk(int share_of, int ranks, int partition, int chunk) const {
    const std::size_t begin = share * static_cast<std::size_t>(on_ring(share_of, ranks));
    const std::size_t own = begin + part * static_cast<std::size_t>(block);
    const std::size_t own_end = least(own + part, least(begin + share, count));
    const int index = partition * kRingLead + chunk;
    const std::size_t first = least(own + piece * static_cast<std::size_t>(index), own_end);
    return {first, least(first + piece, own_end) - first};
  }

 private:
  static TUTTI_BODY std::size_t least(std::size_t a, std::size_t b) { return a < b ? a : b; }
};

template <RingTurns kTurns, class Reduction, class Team>
class RingBlock {
 public:
  using T = typename Reduction::Element;
  static constexpr bool kHasPieces = !(kTurns.adds && kTurns.spreads);

  TUTTI_BODY RingBlock(Team& team, const KernelArgs& work)
      : team_(team),
        work_(work),
        cut_(work, share_of(work), team.block(), sizeof(T)),
        direct_(!goes_through_slots(work)),
        whole_(kHasPieces ? work.rank : work.rank + 1),
        adding_steps_(kTurns.adds ? work.ranks - 1 : 0) {
    const int steps = kTurns.spreads ? work.ranks - 1 : 0;
    // Back through slots chunks need credit, too, unless sums have gone forwards before.
    const bool both_ways = work.ring.directions > 1 && (kTurns.adds || direct_);
    reverse_steps_ = both_ways ? reverse_ring_steps(steps) : 0;
    forward_steps_ = steps - reverse_steps_;
    const std::size_t own = cut_.share * static_cast<std::size_t>(work.rank);
    input_first_ = kTurns.adds ? 0 : own;
    output_first_ = kTurns.spreads ? 0 : own;
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

  // A rank alone: what it has is whole.
  TUTTI_BODY void run_alone() {
    const Range all = cut_.whole_part();
    team_.template for_each_of_chunk<T>(
        all.count, [&](auto access, TileAt tile) { return input_tile(all, access, tile); },
        [&](auto access, TileAt tile, const auto& own) {
          if constexpr (kTurns.adds) {
            Sum sum;
            accumulate<Reduction>(sum, own, 0, NoScalars{});
            keep_tile(all, access, tile, rounded<Reduction>(sum, work_.divisor));
          } else {
            keep_tile(all, access, tile, own);
          }
        });
  }

 private:
  using Sum = Tile<typename Reduction::Accumulator, Team::template tile_elements<T>()>;
  template <class Part>
  struct Pair {
    Part came, own;
  };

  static TUTTI_BODY std::size_t share_of(const KernelArgs& work) {
    return kHasPieces ? piece_of(work) : divided(work.count, work.ranks, 16 / sizeof(T));
  }

  TUTTI_BODY Outcome take_step(int p, int step, int c) {
    const int spread = step - adding_steps_;
    if constexpr (kTurns.adds) {
      const Range chunk = chunk_of(added_forward(whole_, step, 1), p, c);
      if (step == 0) return begin(chunk);
      if (spread <= 0) return add(chunk, spread == 0);
    } else {
      if (step == 0) return begin(chunk_of(whole_, p, c));
    }
    return spread_on(p, spread, c);
  }

  // What nobody waits for any more.
  TUTTI_BODY Outcome end_partition(int p, int c) {
    if constexpr (kTurns.spreads) {
      const Range last = chunk_of(spread_forward(whole_, forward_steps_), p, c);
      if (keep(kForward, last, false) != Outcome::kDone) return Outcome::kFailed;
      if (reverse_steps_ < forward_steps_) return Outcome::kDone;
      return keep(kReverse, chunk_of(spread_reverse(whole_, reverse_steps_), p, c), false);
    } else {
      return add(chunk_of(whole_, p, c), true);
    }
  }

  // With what only this rank has had a part in: all of a share where nothing is added.
  TUTTI_BODY Outcome begin(Range chunk) {
    std::byte *to = nullptr, *back = nullptr;
    const bool sends_back = !kTurns.adds && reverse_steps_ > 0;
    if (place_to(kForward, chunk, to) != Outcome::kDone) return Outcome::kFailed;
    if (sends_back && place_to(kReverse, chunk, back) != Outcome::kDone) return Outcome::kFailed;
    team_.template for_each_of_chunk<T>(
        chunk.count, [&](auto access, TileAt tile) { return input_tile(chunk, access, tile); },
        [&](auto access, TileAt tile, const auto& own) {
          team_.template store<T>(to, access, tile, own);
          if (sends_back) team_.template store<T>(back, access, tile, own);
          if constexpr (!kTurns.adds) keep_tile(chunk, access, tile, own);
        });
    return team_.pass(sent(kForward) | (sends_back ? sent(kReverse) : 0));
  }

  TUTTI_BODY Outcome add(Range chunk, bool is_whole) {
    std::byte *to = nullptr, *back = nullptr, *from = nullptr;
    const bool sends = kTurns.spreads || !is_whole;
    const bool sends_back = is_whole && reverse_steps_ > 0;
    if (sends && place_to(kForward, chunk, to) != Outcome::kDone) return Outcome::kFailed;
    if (sends_back && place_to(kReverse, chunk, back) != Outcome::kDone) return Outcome::kFailed;
    if (place_from(kForward, chunk, from) != Outcome::kDone) return Outcome::kFailed;
    const auto load = [&](auto access, TileAt tile) {
      auto came = team_.template load<T>(from, access, tile);
      return Pair<decltype(came)>{came, input_tile(chunk, access, tile)};
    };
    team_.template for_each_of_chunk<T>(
        chunk.count, load, [&](auto access, TileAt tile, const auto& pair) {
          Sum sum;
          accumulate<Reduction>(sum, pair.came, 0, NoScalars{});
          accumulate<Reduction>(sum, pair.own, 1, NoScalars{});
          const auto value = rounded<Reduction>(sum, is_whole ? work_.divisor : 1);
          if (sends) team_.template store<T>(to, access, tile, value);
          if (sends_back) team_.template store<T>(back, access, tile, value);
          if (is_whole) keep_tile(chunk, access, tile, value);
        });
    return team_.pass(taken(kForward) | (sends ? sent(kForward) : 0) |
                      (sends_back ? sent(kReverse) : 0));
  }

  TUTTI_BODY Outcome spread_on(int p, int step, int c) {
    // A chunk that is sent forwards tells that the one which came back in the same step was taken,
    // so it is waited for before another goes back.
    std::byte* from = nullptr;
    if (team_.slot_from(kForward, from) != Outcome::kDone) return Outcome::kFailed;
    if (step <= reverse_steps_) {
      const Range other = chunk_of(spread_reverse(whole_, step), p, c);
      if (keep(kReverse, other, step < reverse_steps_) != Outcome::kDone) return Outcome::kFailed;
    }
    return keep(kForward, chunk_of(spread_forward(whole_, step), p, c), true);
  }

  // Of a chunk that comes whole.
  TUTTI_BODY Outcome keep(Direction direction, Range chunk, bool sends_on) {
    std::byte *to = nullptr, *from = nullptr;
    if (sends_on && place_to(direction, chunk, to) != Outcome::kDone) return Outcome::kFailed;
    if (place_from(direction, chunk, from) != Outcome::kDone) return Outcome::kFailed;
    const auto load = [&](auto access, TileAt tile) {
      return team_.template load<T>(from, access, tile);
    };
    const auto keep = [&](auto access, TileAt tile, const auto& value) {
      if (sends_on) team_.template store<T>(to, access, tile, value);
      if (!direct_) keep_tile(chunk, access, tile, value);
    };
    if (sends_on || !direct_) team_.template for_each_of_chunk<T>(chunk.count, load, keep);
    return team_.pass(taken(direction) | (sends_on ? sent(direction) : 0));
  }

  // Where the next chunk goes that way, and where it came.
  TUTTI_BODY Outcome place_to(Direction direction, Range chunk, std::byte*& at) {
    if (!direct_) return team_.slot_to(direction, at);
    at = at_chunk(team_.output_at(direction), chunk);
    return Outcome::kDone;
  }
  TUTTI_BODY Outcome place_from(Direction direction, Range chunk, std::byte*& at) {
    if (team_.slot_from(direction, at) != Outcome::kDone) return Outcome::kFailed;
    if (direct_) at = at_chunk(work_.output, chunk);
    return Outcome::kDone;
  }

  TUTTI_BODY Range chunk_of(int share, int p, int c) const {
    return cut_.chunk(share, work_.ranks, p, c);
  }
  static TUTTI_BODY std::byte* at_chunk(std::byte* buffer, Range chunk) {
    return buffer + chunk.first * sizeof(T);
  }
  template <class Access>
  TUTTI_BODY auto input_tile(Range chunk, Access access, TileAt tile) const {
    const std::byte* const from = work_.input + (chunk.first - input_first_) * sizeof(T);
    return team_.template load<T>(from, access, tile);
  }
  template <class Access, class Value>
  TUTTI_BODY void keep_tile(Range chunk, Access access, TileAt tile, const Value& value) const {
    std::byte* const to = work_.output + (chunk.first - output_first_) * sizeof(T);
    team_.template store<T>(to, access, tile, value);
  }

  Team& team_;
  const KernelArgs& work_;
  RingCut cut_;
  const bool direct_;  // from output to output
  const int whole_;    // which share is whole here, and adding is over
  const int adding_steps_;
  int forward_steps_, reverse_steps_;       // of spreading
  std::size_t input_first_, output_first_;  // of buffers that hold one share
};

template <RingTurns kTurns, class Reduction, class Team>
TUTTI_BODY Outcome go_around(Team& team, const KernelArgs& work) {
  RingBlock<kTurns, Reduction, Team> block(team, work);
  if (team.barrier(Publish::kEarlierKernels) != Outcome::kDone) return Outcome::kFailed;
  team.open_ring(block.piece_bytes());
  if (work.ranks == 1) {
    block.run_alone();
  } else if (block.run() != Outcome::kDone) {
    return Outcome::kFailed;
  }
  return team.finish();
}

}  // namespace tutti
