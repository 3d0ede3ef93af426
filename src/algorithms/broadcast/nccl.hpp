// broadcast/nccl: NVIDIA's library, where it is installed.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"

namespace tutti {

struct BroadcastNccl {
  static constexpr Algorithm kAlgorithm{.id = "broadcast/nccl",
                                        .collective = Collective::kBroadcast,
                                        .family = Family::kNccl,
                                        .needs = kNeedsNccl,
                                        .max_ranks_cuda = 1 << 20,
                                        .cost = {.steps = 4.8,
                                                 .steps_per_rank = 0.8,
                                                 .wire = root_wire,
                                                 .between = nccl_chain<root_wire>},
                                        .text = "NCCL, if it is installed",
                                        .peers_read_input = false,
                                        .takes = moves,
                                        .geometry = library_geometry};
  static constexpr Traffic kTraffic{.hops = kNcclsOwn, .wire = "B"};
};

}  // namespace tutti
