// Requests, and rows that exist only here, so that a test does not change its meaning when a real
// row is added.
#pragma once

#include "algorithms/catalogue.hpp"
#include "planning/choose.hpp"

namespace tutti {

inline bool takes_all(DataType, OpKind) { return true; }
inline bool takes_bf16_sums(DataType dtype, OpKind op) {
  return dtype == DataType::kBfloat16 && op == OpKind::kSum;
}
inline Geometry small_geometry(const Extent& extent) {
  return {static_cast<int>(extent.bytes / 1024) + 1, 32 * extent.ranks};
}
inline HostBody no_host_body(DataType, OpKind) { return nullptr; }
inline CudaKernel no_kernel(DataType, OpKind, int) { return nullptr; }
inline double wire_of_all(int ranks) { return ranks - 1; }
inline double wire_of_shards(int ranks) { return 2.0 * (ranks - 1) / ranks; }

inline constexpr Algorithm kTestRows[] = {
    {.id = "all_reduce/quick",
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = 16,
     .max_ranks_cuda = 8,
     .cost = {.steps = 2, .wire = wire_of_all},
     .text = "for tests",
     .takes = takes_all,
     .geometry = small_geometry,
     .host = no_host_body,
     .cuda = no_kernel},
    {.id = "all_reduce/lean",
     .family = Family::kTwoShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = 16,
     .max_ranks_cuda = 8,
     .cost = {.steps = 3, .wire = wire_of_shards},
     .text = "for tests",
     .takes = takes_all,
     .geometry = small_geometry,
     .host = no_host_body,
     .cuda = no_kernel},
    {.id = "all_reduce/ring",
     .needs = kNeedsPeerAccess,
     .max_ranks_cuda = 8,
     .order = Order::kSameOnAllRanks,
     .cost = {.steps = 14, .wire = wire_of_shards},
     .text = "for tests",
     .takes = takes_bf16_sums,
     .geometry = small_geometry,
     .cuda = no_kernel},
    {.id = "all_reduce/switch",
     .family = Family::kMulticast,
     .needs = kNeedsPeerAccess | kNeedsMulticast,
     .max_ranks_cuda = 8,
     .order = Order::kNone,
     .cost = {.steps = 3, .wire = nullptr},
     .text = "for tests",
     .takes = takes_all,
     .geometry = small_geometry,
     .cuda = no_kernel},
    {.id = "all_reduce/nccl",
     .family = Family::kNccl,
     .needs = kNeedsNccl,
     .max_ranks_cuda = 1 << 20,
     .order = Order::kNone,
     .cost = {.steps = 14, .wire = wire_of_shards},
     .text = "for tests",
     .peers_read_input = false,
     .takes = takes_all},
    {.id = "all_reduce/window",
     .family = Family::kNccl,
     .needs = kNeedsPeerAccess | kNeedsNccl | kNeedsNcclWindows,
     .max_ranks_cuda = 8,
     .order = Order::kNone,
     .cost = {.steps = 14, .wire = wire_of_shards},
     .text = "for tests",
     .peers_read_input = false,
     .only_where_measured = true,
     .takes = takes_all},
};

inline Request bytes_of(std::size_t bytes) {
  Request request;
  request.count = bytes;
  request.dtype = DataType::kUint8;
  return request;
}

}  // namespace tutti
