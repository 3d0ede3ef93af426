#include "algorithms/gather/rows.hpp"

#include "algorithms/meeting.hpp"
#include "algorithms/moving.hpp"

namespace tutti {
namespace {

// Costs are all_gather's: the root takes in as much as each rank does there.
constexpr Algorithm kRows[] = {
    {.id = "gather/pull",
     .collective = Collective::kGather,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost = {.steps = 5, .host_steps = 3, .wire = pieces_wire, .local = own_piece_local},
     .text = "the root reads everybody's input",
     .takes = moves,
     .geometry = push_pieces_geometry,
     .host = host_gather_pull<HostTeam>,
     .cuda = cuda_gather_pull},
    {.id = "gather/one_shot_push",
     .collective = Collective::kGather,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost =
         {.steps = 2.4, .host_steps = 5.5, .wire = pieces_wire, .local = packets_of_pieces_local},
     .text = "every rank sends its input to the root, in words that are their own flags",
     .peers_read_input = false,
     .starts_early = true,
     .packets = packets_of_pieces,
     .takes = moves,
     .geometry = packets_of_pieces_geometry,
     .host = host_gather_one_shot_push<HostTeam>,
     .cuda = cuda_gather_one_shot_push},
    {.id = "gather/copy_engine",
     .collective = Collective::kGather,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost = {.steps = 13,
              .steps_per_rank = 2,
              .host_steps = 4,
              .wire = pieces_wire,
              .local = own_piece_local},
     .text = "the root fetches everybody's input by copy engine",
     .only_where_measured = true,
     .takes = moves,
     .geometry = meeting_geometry,
     .host = host_gather_copy_engine<HostTeam>,
     .cuda = cuda_meeting,
     .program = gather_copy_engine},
    {.id = "gather/nccl",
     .collective = Collective::kGather,
     .family = Family::kNccl,
     .needs = kNeedsNccl,
     .max_ranks_cuda = 1 << 20,
     .cost = {.steps = 4.8, .steps_per_rank = 0.8, .wire = pieces_wire},
     .text = "NVIDIA's library, where it is installed",
     .peers_read_input = false,
     .takes = moves,
     .geometry = library_geometry},
    {.id = "gather/nccl_copy_engine",
     .collective = Collective::kGather,
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

std::span<const Algorithm> gather_rows() { return kRows; }

}  // namespace tutti
