#include "algorithms/all_to_all/rows.hpp"

#include "algorithms/meeting.hpp"
#include "algorithms/moving.hpp"

namespace tutti {
namespace {

// As all_gather's; the other ranks' pieces are loaded as well.
double one_shot_pieces_local(int ranks) { return 8 - 1.0 / ranks; }

// Costs are all_gather's: as much crosses the links, in as many hops. On 2 H200s ours took that
// within a tenth up to 1 MB, NCCL up to 1.6 times as long.
constexpr Algorithm kRows[] = {
    {.id = "all_to_all/push",
     .collective = Collective::kAllToAll,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost = {.steps = 5, .host_steps = 3, .wire = pieces_wire, .local = own_piece_local},
     .text = "every rank stores its piece for each rank into that one's output",
     .peers_read_input = false,
     .peers_write_output = true,
     .takes = moves,
     .geometry = push_pieces_geometry,
     .host = host_all_to_all_push<HostTeam>,
     .cuda = cuda_all_to_all_push},
    {.id = "all_to_all/push_per_peer",
     .collective = Collective::kAllToAll,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost = {.steps = 5, .host_steps = 3, .wire = pieces_wire, .local = own_piece_local},
     .text = "as push, by blocks that are bound to one rank each",
     .peers_read_input = false,
     .peers_write_output = true,
     .only_where_measured = true,
     .stands_in_for = "all_to_all/push",
     .stands_in_up_to = 32,
     .takes = moves,
     .geometry = per_peer_geometry,
     .host = host_all_to_all_push_per_peer<HostTeam>,
     .cuda = cuda_all_to_all_push_per_peer},
    {.id = "all_to_all/one_shot_push",
     .collective = Collective::kAllToAll,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost = {.steps = 2.4, .host_steps = 5.5, .wire = pieces_wire, .local = one_shot_pieces_local},
     .text = "every rank sends each rank its piece, in words that are their own flags",
     .peers_read_input = false,
     .starts_early = true,
     .packets = packets_of_pieces,
     .takes = moves,
     .geometry = packets_of_pieces_geometry,
     .host = host_all_to_all_one_shot_push<HostTeam>,
     .cuda = cuda_all_to_all_one_shot_push},
    {.id = "all_to_all/copy_engine",
     .collective = Collective::kAllToAll,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost = {.steps = 13,
              .steps_per_rank = 2,
              .host_steps = 4,
              .wire = pieces_wire,
              .local = own_piece_local},
     .text = "each rank fetches its piece of everybody's input by copy engine",
     .only_where_measured = true,
     .takes = moves,
     .geometry = meeting_geometry,
     .host = host_all_to_all_copy_engine<HostTeam>,
     .cuda = cuda_meeting,
     .program = all_to_all_copy_engine},
    {.id = "all_to_all/nccl",
     .collective = Collective::kAllToAll,
     .family = Family::kNccl,
     .needs = kNeedsNccl,
     .max_ranks_cuda = 1 << 20,
     .cost = {.steps = 4.8, .steps_per_rank = 0.8, .wire = pieces_wire},
     .text = "NVIDIA's library, where it is installed",
     .peers_read_input = false,
     .takes = moves,
     .geometry = library_geometry},
    {.id = "all_to_all/nccl_copy_engine",
     .collective = Collective::kAllToAll,
     .family = Family::kNccl,
     .needs = kNeedsPeerAccess | kNeedsNccl | kNeedsNcclCopyEngines,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost = {.steps = 22, .steps_per_rank = 2, .wire = pieces_wire},
     .text = "NCCL's copy engines, on memory that it knows as windows",
     .peers_read_input = false,
     .only_where_measured = true,
     .takes = moves,
     .geometry = library_geometry},
};

}  // namespace

std::span<const Algorithm> all_to_all_rows() { return kRows; }

}  // namespace tutti
