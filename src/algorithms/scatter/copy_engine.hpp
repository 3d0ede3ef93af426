// scatter/copy_engine: each rank fetches its piece of what the root shows by copy engine.
//
//   show   root: the others' pieces, staged, since nobody knows where its input lies; mine goes to
//          my output
//   meet   they are there
//   copy   others: my piece, from the root's staging to my output
//   meet   nobody reads the root's staging any more
//
// Cost: 2 hops and a few microseconds for each copy, (n-1)/n x bytes over the root's links, all of
// them by copy engines: kernels only meet.
#pragma once

#include "algorithms/barrier/flags.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/engine_passes.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/pieces.hpp"

namespace tutti {

struct ScatterCopyEngine {
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);

  static void program(Stages& stages, const KernelArgs& work, std::size_t element_bytes);

  static constexpr Algorithm kAlgorithm{
      .id = "scatter/copy_engine",
      .collective = Collective::kScatter,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 13,
               .steps_per_rank = 2,
               .host_steps = 4,
               .wire = pieces_wire,
               .local = own_piece_local},
      .text = "each rank fetches its block from the root by copy engine",
      .only_where_measured = true,
      .takes = moves,
      .geometry = meeting_geometry,
      .host = host,
      .cuda = BarrierFlags::cuda,
      .program = program};
  static constexpr Traffic kTraffic{.hops = "2, kernels and copies",
                                    .wire = "(n-1)/n B, from the root"};
};

// One pass: `part` of every piece, shown in slots of `slot` bytes.
inline void fetch_part_of_root(Stages& stages, const KernelArgs& work, const Range& part,
                               std::size_t slot) {
  const EnginePass pass(stages, work, 1, part);
  const bool is_root = work.rank == work.root;
  const auto shown = [&](int rank) {
    return work.staging.at[work.root] + static_cast<std::size_t>(rank) * slot;
  };
  const auto own = [&](int rank) {
    return work.input + static_cast<std::size_t>(rank) * piece_of(work) + part.first;
  };
  std::byte* const output = work.output + part.first;
  if (is_root) {
    pass.begin([&] {
      pass.for_each_other([&](int rank) { pass.copy(shown(rank), own(rank), part.count); });
    });
    pass.copy_own(output, own(work.rank), part.count);
    return pass.meet(Publish::kLoads);
  }
  pass.meet(first_publish(work));
  stages.copies_wait(stages.kernels());
  pass.copy(output, shown(work.rank), part.count);
  pass.end();
}

inline void ScatterCopyEngine::program(Stages& stages, const KernelArgs& work,
                                       std::size_t element_bytes) {
  KernelArgs moved = work;
  moved.count = work.count * element_bytes;
  const std::size_t piece = piece_of(moved), slot = slot_of(moved, moved.ranks, 1);
  for (std::size_t done = 0; done < piece || done == 0; done += slot) {
    fetch_part_of_root(stages, moved, cut(Range{done, slot}, piece), slot);
    if (slot == 0) break;
  }
}

}  // namespace tutti
