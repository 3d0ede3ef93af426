#include "algorithms/reduce/rows.hpp"

#include <algorithm>

#include "algorithms/geometry.hpp"
#include "algorithms/multicast_buffers.hpp"
#include "algorithms/takes.hpp"

namespace tutti {
namespace {

Geometry one_shot_geometry(const Extent& extent) { return push_spread(extent.bytes); }

// Shares are dealt to all but the root.
Geometry staged_geometry(const Extent& extent) {
  return two_shot_geometry({extent.bytes, std::max(extent.ranks - 1, 1), extent.token_bytes});
}

// The root does it all.
Geometry multicast_geometry(const Extent& extent) {
  return two_shot_geometry({extent.bytes, 1, extent.token_bytes});
}

// The root is sent all of each.
double one_shot_wire(int ranks) { return ranks - 1; }
double one_shot_local(int ranks) { return 4 + ranks; }
double staged_wire(int ranks) { return ranks > 1 ? 1 : 0; }
double staged_local(int) { return 3; }
double multicast_wire(int) { return 1; }
double multicast_local(int) { return 2; }

// As half of all_reduce's rows take, of which each does the first one.
constexpr Algorithm kRows[] = {
    {.id = "reduce/one_shot_push",
     .collective = Collective::kReduce,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     .cost = {.steps = 2, .host_steps = 5.5, .wire = one_shot_wire, .local = one_shot_local},
     .text = "every rank sends its input to the root, in words that are their own flags",
     .peers_read_input = false,
     .starts_early = true,
     .packets = whole_packets,
     .takes = takes_no_multipliers,
     .geometry = one_shot_geometry,
     .host = host_reduce_one_shot_push<HostTeam>,
     .cuda = cuda_reduce_one_shot_push},
    {.id = "reduce/two_shot_staged",
     .collective = Collective::kReduce,
     .family = Family::kTwoShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     .cost = {.steps = 7, .wire = staged_wire, .local = staged_local},
     .text = "every rank but the root reduces a share and stores it to the root, in passes",
     .peers_read_input = false,
     .pushes_through_staging = true,
     .takes = takes_everything,
     .geometry = staged_geometry,
     .host = host_reduce_two_shot_staged<HostTeam>,
     .cuda = cuda_reduce_two_shot_staged},
    {.id = "reduce/multicast",
     .collective = Collective::kReduce,
     .family = Family::kMulticast,
     .needs = kNeedsPeerAccess | kNeedsMulticast,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kNone,
     // Not measured by anybody here: as all_reduce/multicast_one_shot, of which the root does its
     // part.
     .cost = {.steps = 4, .wire = multicast_wire, .local = multicast_local},
     .text = "the root has the switch reduce everybody's input",
     .only_where_measured = true,
     .takes = switch_reduces,
     .geometry = multicast_geometry,
     .host = host_reduce_multicast<HostTeam>,
     .cuda = cuda_reduce_multicast},
    {.id = "reduce/nccl",
     .collective = Collective::kReduce,
     .family = Family::kNccl,
     .needs = kNeedsNccl,
     .max_ranks_cuda = 1 << 20,
     .order = Order::kNone,
     .cost = {.steps = 4.8, .steps_per_rank = 0.8, .wire = staged_wire},
     .text = "NVIDIA's library, where it is installed",
     .peers_read_input = false,
     .takes = nccl_takes,
     .geometry = library_geometry},
};

}  // namespace

std::span<const Algorithm> reduce_rows() { return kRows; }

}  // namespace tutti
