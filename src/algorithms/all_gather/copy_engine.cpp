#include "algorithms/all_gather/copy_engine.hpp"

#include "algorithms/all_gather/rows.hpp"
#include "algorithms/engine_passes.hpp"
#include "algorithms/pieces.hpp"

namespace tutti {
// Passes are over a piece; staging shows a part of it.
void all_gather_copy_engine(Stages& stages, const KernelArgs& work, std::size_t element_bytes) {
  KernelArgs one = work;
  one.count = piece_of(work);
  for_each_pass(stages, one, element_bytes, [&](const EnginePass& pass) {
    pass.begin([&] { pass.show(pass.all()); });
    stages.copies_wait(stages.kernels());
    pass.fetch_pieces(one.count);
    pass.end();
  });
}

}  // namespace tutti
