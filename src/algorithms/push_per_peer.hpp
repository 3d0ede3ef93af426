// A push whose blocks are bound to one rank each: what crosses a link comes from a few blocks,
// which have many stores to one peer under way, and a thread never waits for the slowest of its
// peers.
//
//   barrier       every rank has begun, and is done with its staging of the operation before
//   for each pass k, and once more where the last one is to be taken
//     push k      a block bound to another rank: what I have for it, to its output or my slot there
//     take k - 1  a block bound to this rank: what came into my slots
//     barrier k   every push k is there
//
// Block b is bound to rank b % n, on every rank: so what is for a rank is pushed by the same block
// that takes it there, and blocks need to meet their like alone. Of fewer blocks than ranks each is
// bound to several, which it serves one after the other.
//
// A block has a run of every piece for itself, and room for it in every slot.
//
// Passes take turns with two halves of staging, as those of all_reduce/two_shot_staged, which says
// why that is right: a slot is filled by push k behind barrier k - 1, to which its owner came after
// take k - 2, the last one to load from it. Behind the last one nobody has to meet.
#pragma once

#include "algorithms/pieces.hpp"

namespace tutti {

// One pass of a block over a part of its run of every piece, in elements.
struct BoundPass {
  std::size_t piece;
  Range part;           // of each of them
  std::size_t slot;     // of staging: each rank that sends has one, of so many elements
  std::size_t room_at;  // this block's room in it, and in which half

  TUTTI_BODY std::size_t first_of(int rank) const {
    return piece * static_cast<std::size_t>(rank) + part.first;
  }
  TUTTI_BODY std::size_t place(int rank) const {
    return slot * static_cast<std::size_t>(rank) + room_at;
  }
};

// Those of a block. The same for its like on all ranks, and for all ranks it is bound to.
struct BoundPasses {
  std::size_t piece, number = 1;
  bool staged;  // else there is one pass

  TUTTI_BODY BoundPasses(const KernelArgs& work, int block, std::size_t element_bytes,
                         bool in_slots)
      : piece(piece_of(work)), staged(in_slots) {
    const std::size_t unit = 16 / element_bytes;
    const bool alone = work.blocks < work.ranks;
    const int index = alone ? 0 : block / work.ranks;
    int like = alone ? 1 : (work.blocks - block % work.ranks + work.ranks - 1) / work.ranks;
    const std::size_t vectors =
        work.staging_bytes / (static_cast<std::size_t>(2 * work.ranks) * 16);
    slot_ = vectors * unit;
    half_ = slot_ * static_cast<std::size_t>(work.ranks);
    // More blocks than a slot has vectors have nothing to do.
    if (staged && vectors < static_cast<std::size_t>(like)) like = static_cast<int>(vectors);
    run_ = index < like ? shard({0, piece}, index, like, unit) : Range{};
    room_ = staged ? vectors / static_cast<std::size_t>(like) * unit : run_.count;
    room_at_ = room_ * static_cast<std::size_t>(index);
    if (run_.count > room_) number = (run_.count + room_ - 1) / room_;
  }

  TUTTI_BODY BoundPass pass(std::size_t k) const {
    const Range part = cut({run_.first + k * room_, room_}, run_.first + run_.count);
    return {piece, part, slot_, k % 2 * half_ + room_at_};
  }

 private:
  Range run_;  // of each piece
  std::size_t slot_, half_, room_, room_at_;
};

// f(rank) for each rank this block is bound to: not the same one first on every rank.
template <class Team, class F>
TUTTI_BODY void for_each_bound(const Team& team, const KernelArgs& work, F&& f) {
  const int first = team.block() % work.ranks;
  const int bound = (work.ranks - first + work.blocks - 1) / work.blocks;
  TUTTI_NO_UNROLL
  for (int turn = 0; turn < bound; ++turn) f(first + (turn + work.rank) % bound * work.blocks);
}

// push(rank, pass): to oneself as well. take(pass), of what is staged. Behind the first barrier.
template <class Team, class Push, class Take>
TUTTI_BODY Outcome push_bound(Team& team, const KernelArgs& work, const BoundPasses& passes,
                              Push&& push, Take&& take) {
  Outcome taken = Outcome::kDone;
  TUTTI_NO_UNROLL
  for (std::size_t k = 0; k <= passes.number; ++k) {
    for_each_bound(team, work, [&](int rank) {
      if (k < passes.number) push(rank, passes.pass(k));
      if (k > 0 && passes.staged && rank == work.rank) taken = take(passes.pass(k - 1));
    });
    if (taken != Outcome::kDone) return Outcome::kFailed;
    if (k == passes.number) break;
    if (team.barrier(Publish::kStores) != Outcome::kDone) return Outcome::kFailed;
  }
  return team.finish();
}

// Pieces go as they are: has_for(rank) is where this rank has that one's.
template <class Team, class HasFor>
TUTTI_BODY Outcome push_pieces_bound(Team& team, const KernelArgs& work, HasFor&& has_for) {
  using T = std::uint8_t;
  const BoundPasses passes(work, team.block(), 1, work.stage_output);
  const auto place_of = [&](int rank) { return static_cast<std::size_t>(rank) * passes.piece; };
  team.arrive(Publish::kEarlierKernels);
  const auto buffers = team.buffers();
  if (team.wait() != Outcome::kDone) return Outcome::kFailed;

  const auto push = [&](int rank, const BoundPass& pass) {
    const std::byte* const from = has_for(rank);
    const int step = (rank - work.rank - 1 + work.ranks) % work.ranks;
    std::byte* to = work.output + place_of(work.rank);
    if (rank == work.rank && from == to) return;  // in place
    if (rank != work.rank) {
      to = buffers.outputs.of(step) +
           (work.stage_output ? pass.place(work.rank) - pass.part.first : place_of(work.rank));
    }
    team.template copy_alone<T>(pass.part, from, to);
  };
  const auto take = [&](const BoundPass& pass) {
    TUTTI_NO_UNROLL
    for (int r = 0; r < work.ranks; ++r) {
      if (r == work.rank) continue;
      const std::byte* const slot = work.staging.at[work.rank] + pass.place(r) - pass.part.first;
      team.template copy_alone<T>(pass.part, slot, work.output + place_of(r));
    }
    return Outcome::kDone;
  };
  return push_bound(team, work, passes, push, take);
}

}  // namespace tutti
