#include "algorithms/gather/copy_engine.hpp"

#include "algorithms/engine_passes.hpp"
#include "algorithms/gather/rows.hpp"
#include "algorithms/host_program.hpp"
#include "algorithms/pieces.hpp"

namespace tutti {

// Passes are over a piece; staging shows a part of it.
void gather_copy_engine(Stages& stages, const Work& work, std::size_t element_bytes) {
  const bool is_root = work.rank == work.root;
  Work one = work;
  one.count = piece_of(work);
  for_each_pass(stages, one, element_bytes, [&](const EnginePass& pass) {
    const std::size_t first = pass.all().first, count = pass.all().count;
    const auto fetch = [&](int rank, const std::byte* from) {
      pass.copy(pass.output(static_cast<std::size_t>(rank) * one.count + first), from, count);
    };
    pass.begin([&] {
      if (!is_root) pass.show(pass.all());
    });
    if (is_root) {
      stages.copies_wait(stages.kernels());
      pass.for_each_other([&](int rank) { fetch(rank, pass.input_of(rank, first)); });
      fetch(work.rank, work.input + first * element_bytes);
    }
    pass.end();
  });
}

HostBody host_gather_copy_engine(DataType, OpKind) {
  return run_by_team<Reduction<std::uint8_t, Sum>, gather_copy_engine>;
}

}  // namespace tutti
