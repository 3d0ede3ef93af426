#include "algorithms/all_gather_v/rows.hpp"

#include "algorithms/all_to_all_v/rows.hpp"
#include "algorithms/uneven_rows.hpp"

namespace tutti {
namespace {

// Costs are all_gather's.
constexpr Algorithm kRows[] = {
    {.id = "all_gather_v/push",
     .collective = Collective::kAllGatherV,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost = {.steps = 5, .host_steps = 3, .wire = pieces_wire, .local = own_piece_local},
     .text = "every rank stores its input into everybody's output",
     .peers_read_input = false,
     .peers_write_output = true,
     .publishes_counts = true,
     .takes = moves,
     .geometry = push_pieces_geometry,
     .host = host_all_to_all_v_push<HostTeam>,
     .cuda = cuda_all_to_all_v_push},
    {.id = "all_gather_v/one_shot_push",
     .collective = Collective::kAllGatherV,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost =
         {.steps = 2.4, .host_steps = 5.5, .wire = pieces_wire, .local = packets_of_pieces_local},
     .text = "every rank sends its input to everybody, in words that are their own flags",
     .peers_read_input = false,
     .starts_early = true,
     .counts_on_host = true,
     .packets = packets_of_counted_pieces,
     .takes = moves,
     .geometry = packets_of_pieces_geometry,
     .host = host_all_to_all_v_one_shot_push<HostTeam>,
     .cuda = cuda_all_to_all_v_one_shot_push},
    {.id = "all_gather_v/nccl",
     .collective = Collective::kAllGatherV,
     .family = Family::kNccl,
     .needs = kNeedsNccl,
     .max_ranks_cuda = 1 << 20,
     .cost = {.steps = 4.8, .steps_per_rank = 0.8, .wire = pieces_wire},
     .text = "NVIDIA's library, where it is installed: sends and receives in a group",
     .peers_read_input = false,
     .counts_on_host = true,
     .takes = moves,
     .geometry = library_geometry},
};

}  // namespace

std::span<const Algorithm> all_gather_v_rows() { return kRows; }

}  // namespace tutti
