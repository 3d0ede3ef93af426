#include "algorithms/all_to_all/copy_engine.hpp"

#include "algorithms/all_to_all/rows.hpp"
#include "algorithms/engine_passes.hpp"
#include "algorithms/pieces.hpp"

namespace tutti {
namespace {

// One pass: `part` of every piece, staged in slots of `slot` bytes.
void fetch_part(Stages& stages, const KernelArgs& work, const Range& part, std::size_t slot) {
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

}  // namespace

void all_to_all_copy_engine(Stages& stages, const KernelArgs& work, std::size_t element_bytes) {
  KernelArgs moved = work;
  moved.count = work.count * element_bytes;
  const std::size_t piece = piece_of(moved), slot = slot_bytes(moved);
  for (std::size_t done = 0; done < piece || done == 0; done += slot) {
    fetch_part(stages, moved, cut(Range{done, slot}, piece), slot);
    if (slot == 0) break;
  }
}

}  // namespace tutti
