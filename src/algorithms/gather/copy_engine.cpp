#include "algorithms/gather/copy_engine.hpp"

#include "algorithms/engine_passes.hpp"
#include "algorithms/gather/rows.hpp"
#include "algorithms/pieces.hpp"

namespace tutti {

// Passes are over a piece; staging shows a part of it.
void gather_copy_engine(Stages& stages, const KernelArgs& work, std::size_t element_bytes) {
  const bool is_root = work.rank == work.root;
  KernelArgs one = work;
  one.count = piece_of(work);
  for_each_pass(stages, one, element_bytes, [&](const EnginePass& pass) {
    if (!is_root) {
      pass.begin([&] { pass.show(pass.all()); });
      return pass.meet(Publish::kLoads);
    }
    pass.meet(first_publish(work));
    stages.copies_wait(stages.kernels());
    pass.fetch_pieces(one.count);
    pass.end();
  });
}

}  // namespace tutti
