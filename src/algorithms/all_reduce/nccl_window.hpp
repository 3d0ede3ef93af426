// all_reduce/nccl_window: NCCL's symmetric kernels, on memory that it knows as windows.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct AllReduceNcclWindow {
  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce/nccl_window",
      .family = Family::kNccl,
      .needs = kNeedsPeerAccess | kNeedsNccl | kNeedsNcclWindows,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kNone,  // NCCL documents none
      // Not measured yet: as two_shot, which its kernels for large messages are.
      .cost = {.steps = 5, .wire = two_shot_wire, .between = nccl_trees},
      .text = "NCCL's symmetric kernels, on memory registered as windows",
      .peers_read_input = false,
      .only_where_measured = true,
      .takes = nccl_windows_take,
      .geometry = library_geometry};
  static constexpr Traffic kTraffic{.hops = kNcclsOwn, .wire = kNcclsOwn};
};

}  // namespace tutti
