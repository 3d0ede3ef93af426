// all_to_all_v/nccl: NVIDIA's library, where it is installed: sends and receives in a group.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"

namespace tutti {

struct AllToAllVNccl {
  static constexpr Algorithm kAlgorithm{
      .id = "all_to_all_v/nccl",
      .collective = Collective::kAllToAllV,
      .family = Family::kNccl,
      .needs = kNeedsNccl,
      .max_ranks_cuda = 1 << 20,
      .cost = {.steps = 4.8,
               .steps_per_rank = 0.8,
               .wire = pieces_wire,
               .between = nccl_messages<pieces_wire>},
      .text = "NCCL, if it is installed: grouped sends and receives",
      .peers_read_input = false,
      .counts_on_host = true,
      .takes = moves,
      .geometry = library_geometry};
  static constexpr Traffic kTraffic{.hops = kNcclsOwn, .wire = "(n-1)/n B"};
};

}  // namespace tutti
