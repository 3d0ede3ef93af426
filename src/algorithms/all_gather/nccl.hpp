// all_gather/nccl: NVIDIA's library, where it is installed.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"

namespace tutti {

struct AllGatherNccl {
  static constexpr Algorithm kAlgorithm{
      .id = "all_gather/nccl",
      .collective = Collective::kAllGather,
      .family = Family::kNccl,
      .needs = kNeedsNccl,
      .max_ranks_cuda = 1 << 20,
      // What more ranks take, as half of all_reduce's, which goes around twice.
      .cost = {.steps = 4.8,
               .steps_per_rank = 0.8,
               .wire = pieces_wire,
               .between = nccl_chain<pieces_wire>},
      .text = "NCCL, if it is installed",
      .peers_read_input = false,
      .takes = moves,
      .geometry = library_geometry};
  static constexpr Traffic kTraffic{.hops = kNcclsOwn, .wire = "(n-1)/n B"};
};

}  // namespace tutti
