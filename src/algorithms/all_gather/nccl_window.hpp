// all_gather/nccl_window: NCCL's symmetric kernels, on memory that it knows as windows.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"

namespace tutti {

struct AllGatherNcclWindow {
  static constexpr Algorithm kAlgorithm{
      .id = "all_gather/nccl_window",
      .collective = Collective::kAllGather,
      .family = Family::kNccl,
      .needs = kNeedsPeerAccess | kNeedsNccl | kNeedsNcclWindows,
      .max_ranks_cuda = kMaxCudaRanks,
      // Not measured yet: as push, which its kernels for large messages are.
      .cost = {.steps = 5, .wire = pieces_wire, .between = nccl_chain<pieces_wire>},
      .text = "NCCL's symmetric kernels, on memory registered as windows",
      .peers_read_input = false,
      .only_where_measured = true,
      .takes = moves,
      .geometry = library_geometry};
  static constexpr Traffic kTraffic{.hops = kNcclsOwn, .wire = kNcclsOwn};
};

}  // namespace tutti
