#include "algorithms/all_to_all_v/rows.hpp"

#include "algorithms/uneven_rows.hpp"

namespace tutti {
namespace {

// As all_to_all's; the other ranks' pieces are loaded as well.
double one_shot_pieces_local(int ranks) { return 8 - 1.0 / ranks; }

// Costs are all_to_all's, and those of the counts' way there and back.
constexpr Algorithm kRows[] = {
    {.id = "all_to_all_v/push",
     .collective = Collective::kAllToAllV,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost = {.steps = 7, .host_steps = 3, .wire = pieces_wire, .local = own_piece_local},
     .text = "every rank tells what it has for each, and stores it into that one's output",
     .peers_read_input = false,
     .peers_write_output = true,
     .publishes_counts = true,
     .takes = moves,
     .geometry = counted_geometry,
     .host = host_all_to_all_v_push<HostTeam>,
     .cuda = cuda_all_to_all_v_push},
    {.id = "all_to_all_v/one_shot_push",
     .collective = Collective::kAllToAllV,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost = {.steps = 2.6, .host_steps = 5.5, .wire = pieces_wire, .local = one_shot_pieces_local},
     .text = "every rank sends each rank its piece, in words that are their own flags",
     .peers_read_input = false,
     .starts_early = true,
     .counts_on_host = true,
     .packets = packets_of_counted_pieces,
     .takes = moves,
     .geometry = packets_of_pieces_geometry,
     .host = host_all_to_all_v_one_shot_push<HostTeam>,
     .cuda = cuda_all_to_all_v_one_shot_push},
    {.id = "all_to_all_v/nccl",
     .collective = Collective::kAllToAllV,
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

std::span<const Algorithm> all_to_all_v_rows() { return kRows; }

}  // namespace tutti
