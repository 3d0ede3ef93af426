// What a rank does with one chunk of a message that goes from neighbour to neighbour: begins it,
// adds to it, passes it on, keeps it. Which chunks, and when: ring.hpp, of shares that go around a
// ring, and chain.hpp, of a message that goes along a chain.
//
// Chunks lie where they belong in the output where that holds all shares, sums that are not whole
// yet as well: nobody needs the place before. There is one for each, so nobody waits for room.
// Elsewhere, and where neighbours do not reach the outputs, they go through slots in staging, for
// which senders need credit. Inputs are read by their owners alone: any will do.
#pragma once

#include "algorithms/columns.hpp"
#include "algorithms/pieces.hpp"

namespace tutti {

// What ranks do to chunks on their way: add to them, or spread what is whole.
struct ChunkWork {
  bool adds, spreads;
};

template <ChunkWork kDoes, class Reduction, class Team>
class ChunkMoves {
 public:
  using T = typename Reduction::Element;

  // Buffers may hold a part of the message: that which begins with so many elements before it.
  TUTTI_BODY ChunkMoves(Team& team, const KernelArgs& work, std::size_t before_input = 0,
                        std::size_t before_output = 0)
      : team_(team),
        work_(work),
        direct_(!goes_through_slots(work)),
        before_input_(before_input),
        before_output_(before_output) {}

  // From output to output, not through slots.
  TUTTI_BODY bool direct() const { return direct_; }

  // Sends a chunk of the input, which is whole where nothing is added: then it is kept, too.
  TUTTI_BODY Outcome begin(Range chunk, bool sends_back) {
    std::byte *to = nullptr, *back = nullptr;
    if (place_to(kForward, chunk, to) != Outcome::kDone) return Outcome::kFailed;
    if (sends_back && place_to(kReverse, chunk, back) != Outcome::kDone) return Outcome::kFailed;
    team_.template for_each_of_chunk<T>(
        chunk.count, [&](auto access, TileAt tile) { return input_tile(chunk, access, tile); },
        [&](auto access, TileAt tile, const auto& own) {
          team_.template store<T>(to, access, tile, own);
          if (sends_back) team_.template store<T>(back, access, tile, own);
          if constexpr (!kDoes.adds) keep_tile(chunk, access, tile, own);
        });
    return team_.pass(sent(kForward) | (sends_back ? sent(kReverse) : 0));
  }

  // Adds the input to what comes, and sends the sum on; or keeps it, once it is whole.
  TUTTI_BODY Outcome add(Range chunk, bool is_whole, bool sends_back) {
    std::byte *to = nullptr, *back = nullptr, *from = nullptr;
    const bool sends = kDoes.spreads || !is_whole;
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

  // Takes a chunk that comes whole.
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

  // What a rank alone has is whole.
  TUTTI_BODY void keep_own(Range all) {
    team_.template for_each_of_chunk<T>(
        all.count, [&](auto access, TileAt tile) { return input_tile(all, access, tile); },
        [&](auto access, TileAt tile, const auto& own) {
          if constexpr (kDoes.adds) {
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

  static TUTTI_BODY std::byte* at_chunk(std::byte* buffer, Range chunk) {
    return buffer + chunk.first * sizeof(T);
  }
  template <class Access>
  TUTTI_BODY auto input_tile(Range chunk, Access access, TileAt tile) const {
    const std::byte* const from = work_.input + (chunk.first - before_input_) * sizeof(T);
    return team_.template load<T>(from, access, tile);
  }
  template <class Access, class Value>
  TUTTI_BODY void keep_tile(Range chunk, Access access, TileAt tile, const Value& value) const {
    std::byte* const to = work_.output + (chunk.first - before_output_) * sizeof(T);
    team_.template store<T>(to, access, tile, value);
  }

  Team& team_;
  const KernelArgs& work_;
  const bool direct_;
  const std::size_t before_input_, before_output_;
};

// What a block of RingBlock's or ChainBlock's shape does, from the barrier to the end.
template <class Block, class Team>
TUTTI_BODY Outcome run_in_chunks(Team& team, const KernelArgs& work) {
  Block block(team, work);
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
