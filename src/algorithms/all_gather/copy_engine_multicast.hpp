// all_gather/copy_engine_multicast: each rank copies its input once, by copy engine, to where the
// switch stores into everybody's output.
//
//   meet   every output may be written; staging is free
//   copy   my input to all ranks at once, at my place
//   meet   every piece is there
//   copy   out of staging (only for outputs that peers cannot address)
//
// Cost: 2 hops and a copy; 1/n of the bytes go out over each rank's links, all of them come in, by
// copy engines: kernels only meet. In place is safe: at its place a rank stores what is there.
//
// Alone of all programs it copies into other ranks' memory, and a copy that is enqueued is not
// called off: where this rank comes when the others have given up, it still stores into their
// outputs. Hence nothing takes it but a call or a table that names it.
#pragma once

#include "algorithms/barrier/flags.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/engine_passes.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/pieces.hpp"

namespace tutti {

struct AllGatherCopyEngineMulticast {
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);

  static void program(Stages& stages, const KernelArgs& work, std::size_t element_bytes);

  static constexpr Algorithm kAlgorithm{
      .id = "all_gather/copy_engine_multicast",
      .collective = Collective::kAllGather,
      .family = Family::kMulticast,
      .needs = kNeedsPeerAccess | kNeedsMulticast,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      // Not measured by anybody here: as copy_engine, which a budget of no SMs takes before it.
      .cost = {.steps = 14,
               .steps_per_rank = 2,
               .host_steps = 4,
               .wire = pieces_wire,
               .local = own_piece_local},
      .text =
          "each rank copies its input once by copy engine; the switch writes it into every output",
      .peers_read_input = false,
      .peers_write_output = true,
      .only_where_measured = true,
      .takes = moves,
      .geometry = meeting_geometry,
      .host = host,
      .cuda = BarrierFlags::cuda,
      .program = program};
  static constexpr Traffic kTraffic{.hops = "2, kernels and a copy",
                                    .wire = "B/n out, (n-1)/n B in"};
};

// Where rank `rank`'s slot of a pass goes in the output.
inline void copy_out_of_slots(const EnginePass& pass, const KernelArgs& work, std::size_t slot) {
  const std::size_t piece = piece_of(work);
  for (int r = 0; r < work.ranks; ++r) {
    const auto rank = static_cast<std::size_t>(r);
    const std::byte* const from = work.staging.at[work.rank] + rank * slot;
    pass.copy(pass.output(rank * piece + pass.all().first), from, pass.all().count);
  }
}

inline void AllGatherCopyEngineMulticast::program(Stages& stages, const KernelArgs& work,
                                                  std::size_t element_bytes) {
  KernelArgs moved = work;
  moved.count = work.count * element_bytes;
  const std::size_t piece = piece_of(moved), slot = slot_bytes(moved);
  const auto mine = static_cast<std::size_t>(moved.rank);

  for (std::size_t done = 0; done < piece || done == 0; done += slot) {
    const EnginePass pass(stages, moved, 1, cut(Range{done, slot}, piece));
    const std::size_t place = moved.stage_output ? mine * slot : mine * piece;

    done == 0 ? pass.meet(Publish::kEarlierKernels) : pass.meet_behind_copies(Publish::kLoads);
    stages.copies_wait(stages.kernels());
    pass.copy_to_all(place, moved.input + done, pass.all().count);
    pass.meet_behind_copies(Publish::kStores);
    if (moved.stage_output) {
      stages.copies_wait(stages.kernels());
      copy_out_of_slots(pass, moved, slot);
    }
    if (slot == 0) break;
  }
  if (moved.stage_output) stages.kernels_wait(stages.copies());
}

}  // namespace tutti
