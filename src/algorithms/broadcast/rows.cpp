#include "algorithms/broadcast/rows.hpp"

#include <algorithm>

#include "algorithms/meeting.hpp"
#include "algorithms/moving.hpp"

namespace tutti {
namespace {

// Of a share; with more than two ranks in passes, of which one is on its way from the root while
// the one before is passed on. Each costs a barrier, and the last one is passed on alone.
Geometry two_shot_geometry_of(const Extent& extent) {
  const auto others = static_cast<std::size_t>(std::max(extent.ranks - 1, 1));
  const std::size_t share = ceil_div(extent.bytes, others);
  Geometry geometry = stores_geometry(share);
  constexpr std::size_t kPasses = 12, kLeast = 1 * MiB;
  if (extent.ranks > 2) {
    geometry.chunk_bytes = round_up(std::max(ceil_div(extent.bytes, kPasses), kLeast), 256);
  }
  return geometry;
}

Geometry one_shot_geometry(const Extent& extent) { return push_spread(extent.bytes); }

// The root sends all of it to each.
double one_shot_wire(int ranks) { return ranks - 1; }
double two_shot_wire(int ranks) { return ranks > 1 ? 1 : 0; }
double one_shot_local(int) { return 4; }
double root_local(int) { return 2; }

constexpr Algorithm kRows[] = {
    {.id = "broadcast/one_shot_push",
     .collective = Collective::kBroadcast,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost = {.steps = 2.4, .host_steps = 5.5, .wire = one_shot_wire, .local = one_shot_local},
     .text = "the root sends its input to everybody, in words that are their own flags",
     .peers_read_input = false,
     .starts_early = true,
     .packets = whole_packets,
     .takes = moves,
     .geometry = one_shot_geometry,
     .host = host_broadcast_one_shot_push<HostTeam>,
     .cuda = cuda_broadcast_one_shot_push},
    {.id = "broadcast/two_shot",
     .collective = Collective::kBroadcast,
     .family = Family::kTwoShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost = {.steps = 5, .steps_per_rank = 0.5, .wire = two_shot_wire, .local = root_local},
     .text = "the root stores each rank a share, which that one stores to the others, in passes",
     .peers_read_input = false,
     .peers_write_output = true,
     .takes = moves,
     .geometry = two_shot_geometry_of,
     .host = host_broadcast_two_shot<HostTeam>,
     .cuda = cuda_broadcast_two_shot},
    {.id = "broadcast/copy_engine",
     .collective = Collective::kBroadcast,
     .family = Family::kTwoShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost = {.steps = 18,
              .steps_per_rank = 2,
              .host_steps = 4,
              .wire = two_shot_wire,
              .local = root_local},
     .text = "each rank fetches a share from the root, then those of the others, by copy engine",
     .peers_read_input = false,
     .peers_write_output = true,
     .only_where_measured = true,
     .takes = moves,
     .geometry = meeting_geometry,
     .host = host_broadcast_copy_engine<HostTeam>,
     .cuda = cuda_meeting,
     .program = broadcast_copy_engine},
    {.id = "broadcast/nccl",
     .collective = Collective::kBroadcast,
     .family = Family::kNccl,
     .needs = kNeedsNccl,
     .max_ranks_cuda = 1 << 20,
     .cost = {.steps = 4.8, .steps_per_rank = 0.8, .wire = two_shot_wire},
     .text = "NVIDIA's library, where it is installed",
     .peers_read_input = false,
     .takes = moves,
     .geometry = library_geometry},
};

}  // namespace

std::span<const Algorithm> broadcast_rows() { return kRows; }

}  // namespace tutti
