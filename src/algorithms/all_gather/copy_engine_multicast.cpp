#include "algorithms/all_gather/copy_engine_multicast.hpp"

#include "algorithms/all_gather/rows.hpp"
#include "algorithms/engine_passes.hpp"
#include "algorithms/pieces.hpp"

namespace tutti {
namespace {

// Where rank `rank`'s slot of a pass goes in the output.
void copy_out(const EnginePass& pass, const KernelArgs& work, std::size_t slot) {
  const std::size_t piece = piece_of(work);
  for (int r = 0; r < work.ranks; ++r) {
    const auto rank = static_cast<std::size_t>(r);
    const std::byte* const from = work.staging.at[work.rank] + rank * slot;
    pass.copy(pass.output(rank * piece + pass.all().first), from, pass.all().count);
  }
}

}  // namespace

void all_gather_copy_engine_multicast(Stages& stages, const KernelArgs& work,
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
      copy_out(pass, moved, slot);
    }
    if (slot == 0) break;
  }
  if (moved.stage_output) stages.kernels_wait(stages.copies());
}

}  // namespace tutti
