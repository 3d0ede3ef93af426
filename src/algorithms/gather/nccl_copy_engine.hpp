// gather/nccl_copy_engine: NCCL's copy engines, on memory that it knows as windows.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"

namespace tutti {

struct GatherNcclCopyEngine {
  static constexpr Algorithm kAlgorithm{
      .id = "gather/nccl_copy_engine",
      .collective = Collective::kGather,
      .family = Family::kNccl,
      .needs = kNeedsPeerAccess | kNeedsNccl | kNeedsNcclCopyEngines,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 22,
               .steps_per_rank = 2,
               .wire = pieces_wire,
               .between = nccl_rooted<pieces_wire>},
      .text = "NCCL with copy engines, on memory registered as windows",
      .peers_read_input = false,
      .only_where_measured = true,
      .takes = moves,
      .geometry = library_geometry};
  static constexpr Traffic kTraffic{.hops = kNcclsOwn, .wire = "(n-1)/n B, to the root"};
};

}  // namespace tutti
