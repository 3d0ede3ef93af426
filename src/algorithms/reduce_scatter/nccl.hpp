// reduce_scatter/nccl: NVIDIA's library, where it is installed.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct ReduceScatterNccl {
  static constexpr Algorithm kAlgorithm{.id = "reduce_scatter/nccl",
                                        .collective = Collective::kReduceScatter,
                                        .family = Family::kNccl,
                                        .needs = kNeedsNccl,
                                        .max_ranks_cuda = 1 << 20,
                                        .order = Order::kNone,
                                        .cost = {.steps = 2.5,
                                                 .steps_per_rank = 0.8,
                                                 .wire = pieces_wire,
                                                 .between = nccl_chain<pieces_wire>},
                                        .text = "NCCL, if it is installed",
                                        .peers_read_input = false,
                                        .takes = nccl_takes,
                                        .geometry = library_geometry};
  static constexpr Traffic kTraffic{.hops = kNcclsOwn, .wire = "(n-1)/n B"};
};

}  // namespace tutti
