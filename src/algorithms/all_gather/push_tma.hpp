// all_gather/push_tma: as push, pass for pass, but bulk copies carry the data: few threads issue
// them, so that few blocks keep the links busy, and a matmul beside has the other multiprocessors.
//
//   phase 1  barrier: every output may be written; staging is free
//   phase 2  bulk copies take my input to all other ranks at my place, one rank after the other, the
//            next one first; to my own output ordinary accesses do, beside them
//   phase 3  bulk_wait, barrier: every piece is written
//   phase 4  stage out, bulk_wait (only for outputs that peers cannot address)
//
// A block has the same run of every piece, in staging as well, and reads there what its like at
// other ranks have written. In place is safe: my place in my output is not written at all.
//
// Cost: as push.
#pragma once

#include "algorithms/pieces.hpp"

namespace tutti {

template <class Team>
TUTTI_BODY Outcome all_gather_push_tma(Team& team, const Work& work) {
  using T = std::uint8_t;
  const std::size_t piece = piece_of(work), slot = slot_bytes(work);

  for (std::size_t done = 0; done < piece || done == 0; done += slot) {
    const Range part = cut(shard(Range{done, slot}, team.block(), work.blocks, 16), piece);
    // Where that lies in outputs, or in slots, which start at each pass anew.
    const auto place = [&](int rank) {
      const auto index = static_cast<std::size_t>(rank);
      return part.first + (work.stage_output ? index * slot - done : index * piece);
    };

    team.arrive(done == 0 ? Publish::kEarlierKernels : Publish::kLoads);
    const auto buffers = team.buffers(piece);
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;

    const std::byte* const from = work.input + part.first;
    TUTTI_NO_UNROLL
    for (int step = 0; step + 1 < work.ranks; ++step) {
      std::byte* const to = buffers.outputs.of(step) + place(work.rank);
      team.template bulk_copy<T>(to, from, part.count);
    }
    std::byte* const own = buffers.outputs.of(work.ranks - 1) + place(work.rank);
    if (own != from) team.template copy_beside<T>(own, from, part.count);

    if (team.bulk_wait() != Outcome::kDone) return Outcome::kFailed;
    if (team.barrier(Publish::kStores) != Outcome::kDone) return Outcome::kFailed;

    if (work.stage_output) {
      TUTTI_NO_UNROLL
      for (int r = 0; r < work.ranks; ++r) {
        std::byte* const to = work.output + static_cast<std::size_t>(r) * piece + part.first;
        team.template bulk_copy<T>(to, work.staging.at[work.rank] + place(r), part.count);
      }
      if (team.bulk_wait() != Outcome::kDone) return Outcome::kFailed;
    }
    if (slot == 0) break;
  }
  return team.finish();
}

}  // namespace tutti
