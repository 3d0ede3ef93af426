// all_reduce/ring and all_reduce/ring_bidirectional: sums go around, and then come around again.
//
// Every block is a ring of its own over its part of each rank's share, which is cut into chunks.
// All ranks go through the same steps, two chunks at each, and no step waits for the one before:
// only chunks wait, for what came of them, and for a free slot at the neighbour. With n ranks, rank
// r:
//
//   barrier         every rank has begun, and is done with its slots of the operation before
//   step 0          sends its input of share r to the next rank
//   step s < n      adds its input to what came of share r - s, and sends the sum on; the last one
//                   makes the sum of share r + 1 whole: that is kept, too, and sent both ways
//   steps from n    keeps what comes, whole shares from both sides, and sends it on
//
// The last arrivals of a partition, kRingLead chunks of each share, meet the first step of the
// next. Sent both ways, whole shares take ceil((n-1)/2) steps forwards and floor((n-1)/2) back,
// instead of n - 1; bytes are the same.
//
// Cost: 2(n-1) hops, or n - 1 + ceil((n-1)/2), behind a barrier; 2(n-1)/n x bytes over one link
// each way. Only own buffers are touched, and staging: any buffer will do, and in place is safe,
// since an element of the output is stored by the thread that has loaded the same one of the input.
#pragma once

#include "algorithms/columns.hpp"
#include "transport/team.hpp"

namespace tutti {

// Chunks of one step: as many are under way while the first of them is waited for. No more than
// half the slots: then whatever is waited for is of an earlier step.
inline constexpr int kRingLead = RingSlots::kPerBlock / 2;

// How a block's part of the message is cut, in elements. The same on all ranks.
struct RingCut {
  std::size_t count, share, part, piece;
  int block, partitions;

  TUTTI_BODY RingCut(const Work& work, int block_index, std::size_t element_bytes)
      : count(work.count), block(block_index) {
    const std::size_t unit = 16 / element_bytes;
    share = divided(count, work.ranks, unit);
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
    const std::size_t begin = share * static_cast<std::size_t>((share_of + 2 * ranks) % ranks);
    const std::size_t own = begin + part * static_cast<std::size_t>(block);
    const std::size_t own_end = least(own + part, least(begin + share, count));
    const int index = partition * kRingLead + chunk;
    const std::size_t first = least(own + piece * static_cast<std::size_t>(index), own_end);
    return {first, least(first + piece, own_end) - first};
  }

 private:
  static TUTTI_BODY std::size_t least(std::size_t a, std::size_t b) { return a < b ? a : b; }
};

template <class Reduction, class Team>
class RingBlock {
 public:
  using T = typename Reduction::Element;

  TUTTI_BODY RingBlock(Team& team, const Work& work)
      : team_(team), work_(work), cut_(work, team.block(), sizeof(T)) {
    const int whole_steps = work.ranks - 1;
    reverse_steps_ = work.ring.directions > 1 ? whole_steps / 2 : 0;
    forward_steps_ = whole_steps - reverse_steps_;
  }

  TUTTI_BODY Outcome run() {
    const int steps = work_.ranks - 1 + forward_steps_;
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
    team_.template for_each_of_chunk<T>(all.count, [&](auto access, TileAt tile) {
      Sum sum;
      accumulate<Reduction>(sum, loaded(work_.input, all, access, tile), 0, NoScalars{});
      keep_tile(all, access, tile, rounded<Reduction>(sum, work_.divisor));
    });
  }

 private:
  using Sum = Tile<typename Reduction::Accumulator, Team::template tile_elements<T>()>;

  TUTTI_BODY Outcome take_step(int p, int step, int c) {
    const int n = work_.ranks;
    const Range chunk = chunk_of(work_.rank - step, p, c);
    if (step == 0) return begin(chunk);
    if (step < n) return add(chunk, step == n - 1);
    // A chunk that is sent forwards tells that the one which came back in the same step was taken,
    // so it is waited for before another goes back.
    std::byte* from = nullptr;
    if (team_.slot_from(kForward, from) != Outcome::kDone) return Outcome::kFailed;
    const int back = step - n;
    if (back < reverse_steps_) {
      const Range other = chunk_of(work_.rank + 2 + back, p, c);
      if (keep(kReverse, other, back + 1 < reverse_steps_) != Outcome::kDone) {
        return Outcome::kFailed;
      }
    }
    return keep(kForward, chunk, true);
  }

  // What nobody waits for any more.
  TUTTI_BODY Outcome end_partition(int p, int c) {
    const Range last = chunk_of(work_.rank + 1 - forward_steps_, p, c);
    if (keep(kForward, last, false) != Outcome::kDone) return Outcome::kFailed;
    if (reverse_steps_ < forward_steps_) return Outcome::kDone;
    return keep(kReverse, chunk_of(work_.rank + 1 + reverse_steps_, p, c), false);
  }

  TUTTI_BODY Outcome begin(Range chunk) {
    std::byte* to = nullptr;
    if (team_.slot_to(kForward, to) != Outcome::kDone) return Outcome::kFailed;
    team_.template for_each_of_chunk<T>(chunk.count, [&](auto access, TileAt tile) {
      team_.template store<T>(to, access, tile, loaded(work_.input, chunk, access, tile));
    });
    return team_.pass(sent(kForward));
  }

  TUTTI_BODY Outcome add(Range chunk, bool is_whole) {
    std::byte *to = nullptr, *back = nullptr, *from = nullptr;
    const bool sends_back = is_whole && reverse_steps_ > 0;
    if (team_.slot_to(kForward, to) != Outcome::kDone) return Outcome::kFailed;
    if (sends_back && team_.slot_to(kReverse, back) != Outcome::kDone) return Outcome::kFailed;
    if (team_.slot_from(kForward, from) != Outcome::kDone) return Outcome::kFailed;
    team_.template for_each_of_chunk<T>(chunk.count, [&](auto access, TileAt tile) {
      Sum sum;
      const auto own = loaded(work_.input, chunk, access, tile);
      accumulate<Reduction>(sum, team_.template load<T>(from, access, tile), 0, NoScalars{});
      accumulate<Reduction>(sum, own, 1, NoScalars{});
      const auto value = rounded<Reduction>(sum, is_whole ? work_.divisor : 1);
      team_.template store<T>(to, access, tile, value);
      if (sends_back) team_.template store<T>(back, access, tile, value);
      if (is_whole) keep_tile(chunk, access, tile, value);
    });
    return team_.pass(taken(kForward) | sent(kForward) | (sends_back ? sent(kReverse) : 0));
  }

  TUTTI_BODY Outcome keep(Direction direction, Range chunk, bool sends_on) {
    std::byte *to = nullptr, *from = nullptr;
    if (sends_on && team_.slot_to(direction, to) != Outcome::kDone) return Outcome::kFailed;
    if (team_.slot_from(direction, from) != Outcome::kDone) return Outcome::kFailed;
    team_.template for_each_of_chunk<T>(chunk.count, [&](auto access, TileAt tile) {
      const auto value = team_.template load<T>(from, access, tile);
      if (sends_on) team_.template store<T>(to, access, tile, value);
      keep_tile(chunk, access, tile, value);
    });
    return team_.pass(taken(direction) | (sends_on ? sent(direction) : 0));
  }

  TUTTI_BODY Range chunk_of(int share, int p, int c) const {
    return cut_.chunk(share, work_.ranks, p, c);
  }
  template <class Access>
  TUTTI_BODY auto loaded(const std::byte* buffer, Range chunk, Access access, TileAt tile) const {
    return team_.template load<T>(buffer + chunk.first * sizeof(T), access, tile);
  }
  template <class Access, class Value>
  TUTTI_BODY void keep_tile(Range chunk, Access access, TileAt tile, const Value& value) const {
    team_.template store<T>(work_.output + chunk.first * sizeof(T), access, tile, value);
  }

  Team& team_;
  const Work& work_;
  RingCut cut_;
  int forward_steps_, reverse_steps_;
};

template <class Reduction, class Team>
TUTTI_BODY Outcome all_reduce_ring(Team& team, const Work& work) {
  RingBlock<Reduction, Team> block(team, work);
  if (team.barrier(Publish::kEarlierKernels) != Outcome::kDone) return Outcome::kFailed;
  team.open_ring();
  if (work.ranks == 1) {
    block.run_alone();
  } else if (block.run() != Outcome::kDone) {
    return Outcome::kFailed;
  }
  return team.finish();
}

}  // namespace tutti
