// all_reduce/nccl: NVIDIA's library, where it is installed.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct AllReduceNccl {
  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce/nccl",
      .family = Family::kNccl,
      .needs = kNeedsNccl,
      .max_ranks_cuda = 1 << 20,
      .order = Order::kNone,
      // Fitted to what it was measured to take at 1 KiB, 2 to 8 ranks.
      .cost = {.steps = 2.5, .steps_per_rank = 1.6, .wire = two_shot_wire, .between = nccl_trees},
      .text = "NCCL, if it is installed",
      .peers_read_input = false,
      .takes = nccl_takes,
      .geometry = library_geometry};
  static constexpr Traffic kTraffic{.hops = kNcclsOwn, .wire = "2 (n-1)/n B"};
};

}  // namespace tutti
