#include "algorithms/all_gather/rows.hpp"

#include "algorithms/all_gather/copy_engine.hpp"
#include "algorithms/meeting.hpp"
#include "algorithms/moving.hpp"

namespace tutti {
namespace {

constexpr Algorithm kRows[] = {
    {.id = "all_gather/push",
     .collective = Collective::kAllGather,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     // As measured on 2 H200s; so are all other rows.
     .cost = {.steps = 5, .host_steps = 3, .wire = pieces_wire, .local = own_piece_local},
     .text = "every rank stores its input into everybody's output",
     .peers_read_input = false,
     .peers_write_output = true,
     .takes = moves,
     .geometry = push_pieces_geometry,
     .host = host_all_gather_push,
     .cuda = cuda_all_gather_push},
    {.id = "all_gather/one_shot_push",
     .collective = Collective::kAllGather,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .cost =
         {.steps = 2.4, .host_steps = 5.5, .wire = pieces_wire, .local = packets_of_pieces_local},
     .text = "every rank sends its input to everybody, in words that are their own flags",
     .peers_read_input = false,
     .starts_early = true,
     .packets = packets_of_pieces,
     .takes = moves,
     .geometry = packets_of_pieces_geometry,
     .host = host_all_gather_one_shot_push,
     .cuda = cuda_all_gather_one_shot_push},
    {.id = "all_gather/multicast",
     .collective = Collective::kAllGather,
     .family = Family::kMulticast,
     .needs = kNeedsPeerAccess | kNeedsMulticast,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     // Not measured by anybody here: as push, whose bytes all come in as well.
     .cost = {.steps = 5, .host_steps = 3, .wire = pieces_wire, .local = own_piece_local},
     .text = "every rank stores its input once, and the switch into everybody's output",
     .peers_read_input = false,
     .peers_write_output = true,
     .only_where_measured = true,
     .takes = moves,
     .geometry = push_pieces_geometry,
     .host = host_all_gather_multicast,
     .cuda = cuda_all_gather_multicast},
    {.id = "all_gather/copy_engine",
     .collective = Collective::kAllGather,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     // Two kernels, copies, and what they wait for each other.
     .cost = {.steps = 13,
              .steps_per_rank = 2,
              .host_steps = 4,
              .wire = pieces_wire,
              .local = own_piece_local},
     .text = "each rank fetches everybody's input by copy engine",
     .only_where_measured = true,
     .takes = moves,
     .geometry = meeting_geometry,
     .host = host_all_gather_copy_engine,
     .cuda = cuda_meeting,
     .program = all_gather_copy_engine},
    {.id = "all_gather/nccl",
     .collective = Collective::kAllGather,
     .family = Family::kNccl,
     .needs = kNeedsNccl,
     .max_ranks_cuda = 1 << 20,
     // What more ranks take, as half of all_reduce's, which goes around twice.
     .cost = {.steps = 4.8, .steps_per_rank = 0.8, .wire = pieces_wire},
     .text = "NVIDIA's library, where it is installed",
     .peers_read_input = false,
     .takes = moves,
     .geometry = library_geometry},
    {.id = "all_gather/nccl_window",
     .collective = Collective::kAllGather,
     .family = Family::kNccl,
     .needs = kNeedsPeerAccess | kNeedsNccl | kNeedsNcclWindows,
     .max_ranks_cuda = kMaxCudaRanks,
     // Not measured yet: as push, which its kernels for large messages are.
     .cost = {.steps = 5, .wire = pieces_wire},
     .text = "NCCL's symmetric kernels, on memory that it knows as windows",
     .peers_read_input = false,
     .only_where_measured = true,
     .takes = moves,
     .geometry = library_geometry},
    {.id = "all_gather/nccl_copy_engine",
     .collective = Collective::kAllGather,
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

std::span<const Algorithm> all_gather_rows() { return kRows; }

}  // namespace tutti
