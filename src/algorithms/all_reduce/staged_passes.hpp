// How a message goes through two halves of staging, pass after pass.
#pragma once

#include "algorithms/reduction.hpp"

namespace tutti {

// One pass over the message, in elements. The same on all ranks. Shares are as long as each other,
// but for one, which the end of the message cuts short, and none behind it.
struct StagedPass {
  Range all;
  std::size_t share;
  int whole;                 // so many shares are
  std::size_t slot, places;  // of staging: how long one is, and where this pass has the first one

  TUTTI_BODY std::size_t first_of(int rank) const {
    return all.first + share * static_cast<std::size_t>(rank);
  }
  TUTTI_BODY Range share_of(int rank) const {
    return cut({first_of(rank), share}, all.first + all.count);
  }
  TUTTI_BODY std::size_t place(int index) const {
    return places + slot * static_cast<std::size_t>(index);
  }
};

// How a message goes through staging: in passes that take turns with its halves. In each of them a
// slot per rank for what it sends, and where sums are staged, one for the sum of its share.
struct StagedPasses {
  std::size_t count, unit, slot, number;
  int ranks, slots;

  TUTTI_BODY StagedPasses(const KernelArgs& work, std::size_t element_bytes)
      : count(work.count), unit(16 / element_bytes), ranks(work.ranks) {
    slots = work.stage_output ? 2 * ranks : ranks;
    const std::size_t fits = work.staging_bytes / (2 * slots * 16);  // units
    const std::size_t share = divided(count, ranks, unit) / unit;
    number = share > fits ? (share + fits - 1) / fits : 1;
    slot = (share + number - 1) / number * unit;
  }

  TUTTI_BODY StagedPass pass(std::size_t k) const {
    const std::size_t length = slot * static_cast<std::size_t>(ranks);
    const Range all = cut({length * k, length}, count);
    const std::size_t share = divided(all.count, ranks, unit);
    const int whole = share == 0 ? 0 : static_cast<int>(all.count / share);
    return {all, share, whole, slot, k % 2 * slots * slot};
  }
};

// All of an operation but what a block moves: `block` pushes, reduces and copies out a pass, which
// is nothing where sums are not staged, and settle() waits until what these have begun is complete.
template <class Reduction, class Team, class Block>
TUTTI_BODY Outcome run_staged_passes(Team& team, const KernelArgs& work, const Block& block) {
  const StagedPasses passes(work, sizeof(typename Reduction::Element));
  publish_scalar<Reduction>(team, work);
  team.arrive(first_publish(work));
  const auto buffers = team.buffers();
  if (team.wait() != Outcome::kDone) return Outcome::kFailed;
  const Scalars<Reduction, Team::kMaxRanks> scalars(team, work);

  TUTTI_NO_UNROLL
  for (std::size_t k = 0; k <= passes.number; ++k) {
    if (k < passes.number) block.push(passes.pass(k));
    if (k > 1) block.copy_out(passes.pass(k - 2));
    if (k > 0) block.reduce(passes.pass(k - 1), buffers.outputs, scalars);
    if (block.settle() != Outcome::kDone) return Outcome::kFailed;
    if (team.barrier(Publish::kStores) != Outcome::kDone) return Outcome::kFailed;
  }
  if (work.stage_output) {
    block.copy_out(passes.pass(passes.number - 1));
    if (block.settle() != Outcome::kDone) return Outcome::kFailed;
  }
  return team.finish();
}

}  // namespace tutti
