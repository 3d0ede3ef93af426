// reduce/nccl: NVIDIA's library, where it is installed.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct ReduceNccl {
  static constexpr Algorithm kAlgorithm{.id = "reduce/nccl",
                                        .collective = Collective::kReduce,
                                        .family = Family::kNccl,
                                        .needs = kNeedsNccl,
                                        .max_ranks_cuda = 1 << 20,
                                        .order = Order::kNone,
                                        .cost = {.steps = 4.8,
                                                 .steps_per_rank = 0.8,
                                                 .wire = root_wire,
                                                 .between = nccl_chain<root_wire>},
                                        .text = "NCCL, if it is installed",
                                        .peers_read_input = false,
                                        .takes = nccl_takes,
                                        .geometry = library_geometry};
  static constexpr Traffic kTraffic{.hops = kNcclsOwn, .wire = "B"};
};

}  // namespace tutti
