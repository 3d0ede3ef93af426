// all_gather/copy_engine: each rank fetches everybody's input by copy engine.
//
//   show   my input: staged, if peers cannot address it
//   meet   every input is there
//   copy   every other rank's input to its place in my output, next rank first; my own, too
//   meet   nobody reads my input any more
//
// Cost: 2 hops and a few microseconds for each copy, (n-1)/n x bytes over each rank's links, all of
// them by copy engines: kernels only meet. In place is safe: each rank writes where peers do not
// read.
#pragma once

#include "algorithms/barrier/flags.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/engine_passes.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/pieces.hpp"

namespace tutti {

struct AllGatherCopyEngine {
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);

  static void program(Stages& stages, const KernelArgs& work, std::size_t element_bytes);

  static constexpr Algorithm kAlgorithm{
      .id = "all_gather/copy_engine",
      .collective = Collective::kAllGather,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      // Two kernels, copies, and what they wait for each other.
      .cost = {.steps = 13,
               .steps_per_rank = 2,
               .host_steps = 4,
               .wire = pieces_wire,
               .local = own_piece_local},
      .text = "each rank fetches every rank's input by copy engine",
      .only_where_measured = true,
      .takes = moves,
      .geometry = meeting_geometry,
      .host = host,
      .cuda = BarrierFlags::cuda,
      .program = program};
  static constexpr Traffic kTraffic{.hops = "2, kernels and copies", .wire = "(n-1)/n B"};
};

// Passes are over a piece; staging shows a part of it.
inline void AllGatherCopyEngine::program(Stages& stages, const KernelArgs& work,
                                         std::size_t element_bytes) {
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
