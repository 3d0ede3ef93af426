#include "algorithms/reduce_scatter_v/rows.hpp"

#include "algorithms/takes.hpp"
#include "algorithms/uneven_rows.hpp"

namespace tutti {
namespace {

// As half of two_shot_push.
double one_shot_push_local(int) { return 8; }

// Costs are reduce_scatter's.
constexpr Algorithm kRows[] = {
    {.id = "reduce_scatter_v/pull",
     .collective = Collective::kReduceScatterV,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     .cost = {.steps = 4, .wire = pieces_wire, .local = own_piece_local},
     .text = "each rank reads its piece of everybody's input and reduces it",
     .publishes_counts = true,
     .takes = takes_everything,
     .geometry = two_shot_geometry,
     .host = host_reduce_scatter_v_pull<HostTeam>,
     .cuda = cuda_reduce_scatter_v_pull},
    {.id = "reduce_scatter_v/one_shot_push",
     .collective = Collective::kReduceScatterV,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     .cost = {.steps = 1.1,
              .steps_per_rank = 0.15,
              .host_steps = 5.5,
              .wire = pieces_wire,
              .local = one_shot_push_local},
     .text = "every rank sends each rank its piece, in words that are their own flags",
     .peers_read_input = false,
     .starts_early = true,
     .counts_on_host = true,
     .packets = packets_of_pieces,
     .takes = takes_no_multipliers,
     .geometry = packets_of_pieces_geometry,
     .host = host_reduce_scatter_v_one_shot_push<HostTeam>,
     .cuda = cuda_reduce_scatter_v_one_shot_push},
    {.id = "reduce_scatter_v/nccl",
     .collective = Collective::kReduceScatterV,
     .family = Family::kNccl,
     .needs = kNeedsNccl,
     .max_ranks_cuda = 1 << 20,
     .order = Order::kNone,
     .cost = {.steps = 2.5, .steps_per_rank = 0.8, .wire = pieces_wire},
     .text = "NVIDIA's library, where it is installed: a reduction to each rank, in a group",
     .peers_read_input = false,
     .counts_on_host = true,
     .takes = nccl_takes,
     .geometry = library_geometry},
};

}  // namespace

std::span<const Algorithm> reduce_scatter_v_rows() { return kRows; }

}  // namespace tutti
