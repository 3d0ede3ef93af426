// gather/copy_engine: the root fetches everybody's input by copy engine.
//
//   show   my input: staged, if peers cannot address it
//   meet   every input is there
//   copy   root: every other rank's input to its place in my output, next rank first; my own, too
//   meet   nobody reads my input any more
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

struct GatherCopyEngine {
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);

  static void program(Stages& stages, const KernelArgs& work, std::size_t element_bytes);

  static constexpr Algorithm kAlgorithm{
      .id = "gather/copy_engine",
      .collective = Collective::kGather,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 13,
               .steps_per_rank = 2,
               .host_steps = 4,
               .wire = pieces_wire,
               .local = own_piece_local},
      .text = "the root fetches every rank's input by copy engine",
      .only_where_measured = true,
      .takes = moves,
      .geometry = meeting_geometry,
      .host = host,
      .cuda = BarrierFlags::cuda,
      .program = program};
  static constexpr Traffic kTraffic{.hops = "2, kernels and copies",
                                    .wire = "(n-1)/n B, to the root"};
};

// Passes are over a piece; staging shows a part of it.
inline void GatherCopyEngine::program(Stages& stages, const KernelArgs& work,
                                      std::size_t element_bytes) {
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
