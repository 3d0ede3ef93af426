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
#pragma once

#include "algorithms/between_copies.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/engine_passes.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct AllReduceOneShotCopyEngine {
  using Types = EveryReduction;
  static HostBody host(DataType dtype, OpKind op);

  static Geometry geometry(const Extent& extent) { return copy_engine_geometry(extent.bytes); }

  static void program(Stages& stages, const KernelArgs& work, std::size_t element_bytes);

  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce/one_shot_copy_engine",
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = 2,
      .max_ranks_cuda = 2,
      .order = Order::kRankOrder,
      // Three kernels, copies, and what they wait for each other, as measured on 2 H200s.
      .cost = {.steps = 18.8, .host_steps = 4, .wire = one_shot_wire, .local = times<4>},
      .text = "two ranks fetch each other's input by copy engine and reduce",
      .peers_write_output = true,
      .in_place_needs_staging = true,
      .only_where_measured = true,
      .takes = takes_no_multipliers,
      .geometry = geometry,
      .host = host,
      .cuda = BetweenCopies::cuda,
      .program = program};
  static constexpr Traffic kTraffic{.hops = "2, kernels and copies", .wire = "B"};
};

inline void AllReduceOneShotCopyEngine::program(Stages& stages, const KernelArgs& work,
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
