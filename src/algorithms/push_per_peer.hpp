// A push whose blocks are bound to one rank each: what crosses a link comes from a few blocks,
// which have many stores to one peer under way, and a thread never waits for the slowest of its
// peers.
//
//   barrier       every rank has begun, and is done with its staging of the operation before
//   for each pass k, and once more where the last one is to be taken
//     push k      blocks bound to a rank: what I have for it, to its output or my slot there
//     take k - 1  blocks bound to this rank: what came into my slots
//     barrier k   every push k is there
//
// Block b is bound to rank b % n, on every rank: so what is for a rank is pushed, tile by tile, by
// the same block that takes it there, and blocks need to meet their like alone. Of fewer blocks
// than ranks each is bound to several, which it serves one after the other.
//
// Passes take turns with two halves of staging, as those of all_reduce/two_shot_staged, which says
// why that is right: a slot is filled by push k behind barrier k - 1, to which its owner came after
// take k - 2, the last one to load from it. Behind the last one nobody has to meet.
#pragma once

#include "algorithms/pieces.hpp"

namespace tutti {

// Who of a grid is bound to that rank, as a block that is sees it.
TUTTI_BODY BlockGroup group_bound_to(int rank, int block, const Work& work) {
  if (work.blocks < work.ranks) return {};
  return {block / work.ranks, (work.blocks - rank + work.ranks - 1) / work.ranks};
}

// f(rank, group) for each rank this block is bound to: not the same one first on every rank.
template <class Team, class F>
TUTTI_BODY void for_each_bound(const Team& team, const Work& work, F&& f) {
  const int first = team.block() % work.ranks;
  const int bound = (work.ranks - first + work.blocks - 1) / work.blocks;
  TUTTI_NO_UNROLL
  for (int turn = 0; turn < bound; ++turn) {
    const int rank = first + (turn + work.rank) % bound * work.blocks;
    f(rank, group_bound_to(rank, team.block(), work));
  }
}

// push(rank, pass, group): to oneself as well. take(pass, group), of what is staged. Behind the
// first barrier.
template <class Team, class Push, class Take>
TUTTI_BODY Outcome push_bound(Team& team, const Work& work, const PiecePasses& passes, Push&& push,
                              Take&& take) {
  TUTTI_NO_UNROLL
  for (std::size_t k = 0; k <= passes.number; ++k) {
    for_each_bound(team, work, [&](int rank, BlockGroup group) {
      if (k < passes.number) push(rank, passes.pass(k), group);
      if (k > 0 && passes.staged && rank == work.rank) take(passes.pass(k - 1), group);
    });
    if (k == passes.number) break;
    if (team.barrier(Publish::kStores) != Outcome::kDone) return Outcome::kFailed;
  }
  return team.finish();
}

// Pieces go as they are: has_for(rank) is where this rank has that one's.
template <class Team, class HasFor>
TUTTI_BODY Outcome push_pieces_bound(Team& team, const Work& work, HasFor&& has_for) {
  using T = std::uint8_t;
  const PiecePasses passes(work, 1, work.stage_output);
  const auto place_of = [&](int rank) { return static_cast<std::size_t>(rank) * passes.piece; };
  team.arrive(Publish::kEarlierKernels);
  const auto buffers = team.buffers();
  if (team.wait() != Outcome::kDone) return Outcome::kFailed;

  const auto push = [&](int rank, const PiecePass& pass, BlockGroup group) {
    const std::byte* const from = has_for(rank);
    const int step = (rank - work.rank - 1 + work.ranks) % work.ranks;
    std::byte* to = work.output + place_of(work.rank);
    if (rank == work.rank && from == to) return;  // in place
    if (rank != work.rank) {
      to = buffers.outputs.of(step) +
           (work.stage_output ? pass.place(work.rank) - pass.done : place_of(work.rank));
    }
    team.template copy_between<T>(group, {pass.done, pass.share}, from, to);
  };
  const auto take = [&](const PiecePass& pass, BlockGroup group) {
    TUTTI_NO_UNROLL
    for (int r = 0; r < work.ranks; ++r) {
      if (r == work.rank) continue;
      const std::byte* const slot = work.staging.at[work.rank] + pass.place(r);
      team.template copy_between<T>(group, {pass.done, pass.share}, slot - pass.done,
                                    work.output + place_of(r));
    }
  };
  return push_bound(team, work, passes, push, take);
}

}  // namespace tutti
