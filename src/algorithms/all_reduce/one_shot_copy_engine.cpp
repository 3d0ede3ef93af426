// all_reduce/one_shot_copy_engine: two ranks fetch each other's input by copy engine, and add.
//
//   show      my input: staged, if the other rank cannot address it
//   meet      both inputs are there
//   for each chunk k, copies ahead of kernels:
//     copy    the other rank's, to where its sum will be
//     reduce  it with the own one; after the last chunk meet: nobody reads my input any more
//
// Cost: 2 hops, 1 x bytes over the link, and 3 x through own memory besides. In place the other
// rank's chunk would come to lie upon the own one: that is staged.
#include "algorithms/all_reduce/copy_engine.hpp"
#include "algorithms/engine_passes.hpp"

namespace tutti {

void all_reduce_one_shot_copy_engine(Stages& stages, const KernelArgs& work,
                                     std::size_t element_bytes) {
  const int other = work.ranks - 1 - work.rank;  // this one, if it is alone
  for_each_pass(stages, work, element_bytes, [&](const EnginePass& pass) {
    const EngineChunks chunks = pass.chunks_of(pass.all().count);
    const auto place = [&](std::size_t k) { return pass.all().first + chunks.first(k); };
    pass.begin([&] { pass.show(pass.all()); });
    if (chunks.number > 0) stages.copies_wait(stages.kernels());

    for (std::size_t k = 0; k < chunks.number; ++k) {
      const std::size_t at = place(k), count = chunks.length(k);
      KernelArgs part = pass.part(pass.output(at), count);
      part.inputs.at[other] = pass.output(at);
      part.inputs.at[work.rank] = pass.input_of(work.rank, at);
      if (other != work.rank) pass.copy(pass.output(at), pass.input_of(other, at), count);
      stages.kernels_wait(stages.copies());
      part.meets = k + 1 == chunks.number;
      stages.reduce(part, Publish::kLoads);
    }
  });
}

}  // namespace tutti
