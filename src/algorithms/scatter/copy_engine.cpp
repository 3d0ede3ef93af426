#include "algorithms/scatter/copy_engine.hpp"

#include "algorithms/engine_passes.hpp"
#include "algorithms/pieces.hpp"
#include "algorithms/scatter/rows.hpp"

namespace tutti {
namespace {

// One pass: `part` of every piece, shown in slots of `slot` bytes.
void fetch_part(Stages& stages, const KernelArgs& work, const Range& part, std::size_t slot) {
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

}  // namespace

void scatter_copy_engine(Stages& stages, const KernelArgs& work, std::size_t element_bytes) {
  KernelArgs moved = work;
  moved.count = work.count * element_bytes;
  const std::size_t piece = piece_of(moved), slot = slot_of(moved, moved.ranks, 1);
  for (std::size_t done = 0; done < piece || done == 0; done += slot) {
    fetch_part(stages, moved, cut(Range{done, slot}, piece), slot);
    if (slot == 0) break;
  }
}

}  // namespace tutti
