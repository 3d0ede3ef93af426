#include "algorithms/reduce_scatter/rows.hpp"

#include "algorithms/all_reduce/rows.hpp"
#include "algorithms/fabric.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/reduce_scatter/copy_engine.hpp"
#include "algorithms/takes.hpp"

namespace tutti {
namespace {

// As all_reduce's programs have it; chunks are as long as staging allows.
Geometry copy_engine_geometry(const Extent& extent) { return spread(share_of(extent), 512, 64); }

double push_local(int) { return 1; }
// What comes is stored, and loaded with the own part.
double ring_local(int) { return 3; }
// The switch asks every rank for everybody's piece.
double multicast_wire(int) { return 1; }
// As half of two_shot_push.
double one_shot_push_local(int) { return 8; }
// What is fetched is stored, and loaded with the own part.
double copy_engine_local(int) { return 2; }

// What each takes is what half of a row of all_reduce takes: of two_shot, two_shot_staged,
// two_shot_push, two_shot_copy_engine and nccl. On 2 H200s ours took that within a fifth up to 1
// MB; push and copy_engine up to 1.4 times as long for large messages.
constexpr Algorithm kRows[] = {
    {.id = "reduce_scatter/pull",
     .collective = Collective::kReduceScatter,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     // Without the store to everyone.
     .cost = {.steps = 4, .wire = pieces_wire, .local = own_piece_local},
     .text = "each rank reads its piece of everybody's input and reduces it",
     .takes = takes_everything,
     .geometry = two_shot_geometry,
     .host = host_reduce_scatter_pull,
     .cuda = cuda_reduce_scatter_pull},
    {.id = "reduce_scatter/pull_tma",
     .collective = Collective::kReduceScatter,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     .cost = {.steps = 5.5, .wire = pieces_wire, .local = own_piece_local},
     .text = "as pull, by bulk copies, which take few multiprocessors",
     .only_where_measured = true,
     .stands_in_for = "reduce_scatter/pull",
     .stands_in_up_to = 32,
     .least_compute = 90,
     .min_threads = 64,
     .shared_bytes = kBulkBytes,
     .takes = takes_everything,
     .geometry = bulk_geometry,
     .host = host_reduce_scatter_pull_tma,
     .cuda = cuda_reduce_scatter_pull_tma},
    {.id = "reduce_scatter/pull_rows",
     .collective = Collective::kReduceScatter,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     // As pull.
     .cost = {.steps = 4, .wire = pieces_wire, .local = own_piece_local},
     .text = "pull, of a matrix that is split along its last dimension",
     .splits_rows = true,
     .takes = takes_everything,
     .geometry = two_shot_geometry,
     .host = host_reduce_scatter_pull_rows,
     .cuda = cuda_reduce_scatter_pull_rows},
    {.id = "reduce_scatter/push",
     .collective = Collective::kReduceScatter,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     // Of one pass.
     .cost = {.steps = 5.2, .wire = pieces_wire, .local = push_local},
     .text = "every rank pushes each rank its piece, which reduces it, in passes",
     .peers_read_input = false,
     .pushes_through_staging = true,
     .only_where_measured = true,
     .takes = takes_everything,
     .geometry = two_shot_geometry,
     .host = host_reduce_scatter_push,
     .cuda = cuda_reduce_scatter_push},
    {.id = "reduce_scatter/ring",
     .collective = Collective::kReduceScatter,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kNone,
     .cost = {.steps = -1, .steps_per_rank = 4.1, .wire = pieces_wire, .local = ring_local},
     .text = "sums go from rank to rank, chunk by chunk, and end where they are whole",
     .peers_read_input = false,
     .ring_directions = 1,
     .only_where_measured = true,
     .min_threads = 64,
     .takes = rings_take,
     .geometry = ring_geometry,
     .host = host_reduce_scatter_ring,
     .cuda = cuda_reduce_scatter_ring},
    {.id = "reduce_scatter/one_shot_push",
     .collective = Collective::kReduceScatter,
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
     .packets = packets_of_pieces,
     .takes = takes_no_multipliers,
     .geometry = packets_of_pieces_geometry,
     .host = host_reduce_scatter_one_shot_push,
     .cuda = cuda_reduce_scatter_one_shot_push},
    {.id = "reduce_scatter/multicast",
     .collective = Collective::kReduceScatter,
     .family = Family::kMulticast,
     .needs = kNeedsPeerAccess | kNeedsMulticast,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kNone,
     // Not measured by anybody here: as pull.
     .cost = {.steps = 4, .wire = multicast_wire, .local = own_piece_local},
     .text = "each rank has the switch reduce its piece",
     .only_where_measured = true,
     .takes = switch_reduces,
     .geometry = two_shot_geometry,
     .host = host_reduce_scatter_multicast,
     .cuda = cuda_reduce_scatter_multicast},
    {.id = "reduce_scatter/copy_engine",
     .collective = Collective::kReduceScatter,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     .cost = {.steps = 12,
              .steps_per_rank = 4,
              .host_steps = 4,
              .wire = pieces_wire,
              .local = copy_engine_local},
     .text = "each rank fetches its piece of everybody's input by copy engine, and reduces it",
     .fetches_into_staging = true,
     .only_where_measured = true,
     .takes = takes_no_multipliers,
     .geometry = copy_engine_geometry,
     .host = host_reduce_scatter_copy_engine,
     .cuda = cuda_all_reduce_copy_engine,
     .program = reduce_scatter_copy_engine},
    {.id = "reduce_scatter/nccl",
     .collective = Collective::kReduceScatter,
     .family = Family::kNccl,
     .needs = kNeedsNccl,
     .max_ranks_cuda = 1 << 20,
     .order = Order::kNone,
     .cost = {.steps = 2.5, .steps_per_rank = 0.8, .wire = pieces_wire},
     .text = "NVIDIA's library, where it is installed",
     .peers_read_input = false,
     .takes = nccl_takes,
     .geometry = library_geometry},
    {.id = "reduce_scatter/nccl_window",
     .collective = Collective::kReduceScatter,
     .family = Family::kNccl,
     .needs = kNeedsPeerAccess | kNeedsNccl | kNeedsNcclWindows,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kNone,  // NCCL documents none
     // Not measured yet: as pull, which its kernels for large messages are.
     .cost = {.steps = 5, .wire = pieces_wire},
     .text = "NCCL's symmetric kernels, on memory that it knows as windows",
     .peers_read_input = false,
     .only_where_measured = true,
     .takes = nccl_windows_take,
     .geometry = library_geometry},
};

}  // namespace

std::span<const Algorithm> reduce_scatter_rows() { return kRows; }

}  // namespace tutti
