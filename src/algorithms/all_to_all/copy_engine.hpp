// all_to_all/copy_engine: each rank fetches its piece of everybody's input by copy engine.
//
//   show   my pieces for the others: staged, if peers cannot address my input
//   meet   every input is there
//   copy   my piece of every other rank's input to that rank's place in my output, next rank first;
//          my own, too
//   meet   nobody reads my input any more
//
// Cost: 2 hops and a few microseconds for each copy, (n-1)/n x bytes over each rank's links, all of
// them by copy engines: kernels only meet.
#pragma once

#include "algorithms/barrier/flags.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/engine_passes.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/pieces.hpp"

namespace tutti {

struct AllToAllCopyEngine {
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);

  static void program(Stages& stages, const KernelArgs& work, std::size_t element_bytes);

  static constexpr Algorithm kAlgorithm{
      .id = "all_to_all/copy_engine",
      .collective = Collective::kAllToAll,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 13,
               .steps_per_rank = 2,
               .host_steps = 4,
               .wire = pieces_wire,
               .local = own_piece_local},
      .text = "each rank fetches its block of every rank's input by copy engine",
      .only_where_measured = true,
      .takes = moves,
      .geometry = meeting_geometry,
      .host = host,
      .cuda = BarrierFlags::cuda,
      .program = program};
  static constexpr Traffic kTraffic{.hops = "2, kernels and copies", .wire = "(n-1)/n B"};
};

// One pass: `part` of every piece, staged in slots of `slot` bytes.
inline void fetch_part_for_each(Stages& stages, const KernelArgs& work, const Range& part,
                                std::size_t slot) {
  const EnginePass pass(stages, work, 1, part);
  const auto in_piece = [&](int rank) {
    return static_cast<std::size_t>(rank) * piece_of(work) + part.first;
  };
  // Where rank `from` shows what it has for rank `to`.
  const auto shown = [&](int from, int to) {
    return pass.is_staged() ? work.staging.at[from] + static_cast<std::size_t>(to) * slot
                            : work.inputs.at[from] + in_piece(to);
  };
  pass.begin([&] {
    pass.for_each_other([&](int rank) {
      pass.copy(shown(work.rank, rank), work.input + in_piece(rank), part.count);
    });
  });
  stages.copies_wait(stages.kernels());
  pass.for_each_other([&](int rank) {
    pass.copy(work.output + in_piece(rank), shown(rank, work.rank), part.count);
  });
  const std::size_t own = in_piece(work.rank);
  pass.copy_own(work.output + own, work.input + own, part.count);
  pass.end();
}

inline void AllToAllCopyEngine::program(Stages& stages, const KernelArgs& work,
                                        std::size_t element_bytes) {
  KernelArgs moved = work;
  moved.count = work.count * element_bytes;
  const std::size_t piece = piece_of(moved), slot = slot_bytes(moved);
  for (std::size_t done = 0; done < piece || done == 0; done += slot) {
    fetch_part_for_each(stages, moved, cut(Range{done, slot}, piece), slot);
    if (slot == 0) break;
  }
}

}  // namespace tutti
