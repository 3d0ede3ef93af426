// gather/nccl: NVIDIA's library, where it is installed.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"

namespace tutti {

struct GatherNccl {
  static constexpr Algorithm kAlgorithm{.id = "gather/nccl",
                                        .collective = Collective::kGather,
                                        .family = Family::kNccl,
                                        .needs = kNeedsNccl,
                                        .max_ranks_cuda = 1 << 20,
                                        .cost = {.steps = 4.8,
                                                 .steps_per_rank = 0.8,
                                                 .wire = pieces_wire,
                                                 .between = nccl_rooted<pieces_wire>},
                                        .text = "NCCL, if it is installed",
                                        .peers_read_input = false,
                                        .takes = moves,
                                        .geometry = library_geometry};
  static constexpr Traffic kTraffic{.hops = kNcclsOwn, .wire = "(n-1)/n B"};
};

}  // namespace tutti
