#include "algorithms/all_reduce/rows.hpp"

#include <algorithm>

#include "algorithms/geometry.hpp"
#include "algorithms/multicast_buffers.hpp"
#include "algorithms/takes.hpp"
#include "base/units.hpp"
#include "device/kernel_args.hpp"

namespace tutti {
namespace {

// Measured as two_shot_geometry() was, of the whole message.
Geometry one_shot_geometry(const Extent& extent) {
  const std::size_t bytes = extent.bytes;
  if (bytes <= 64 * KiB) return spread(bytes, 64, 64);
  if (bytes <= 256 * KiB) return spread(bytes, 128, 64);
  return spread(bytes, 256, 64);
}

Geometry one_shot_push_geometry(const Extent& extent) { return push_spread(extent.bytes); }

Geometry two_shot_push_geometry(const Extent& extent) { return push_spread(share_of(extent)); }

// A few copies of each share's length: measured with bare programs on 2 and 4 H200s, one more of
// them costs 4 us.
Geometry copy_engine_geometry(std::size_t bytes) {
  constexpr std::size_t kLeast = 4 * MiB;
  Geometry geometry = spread(bytes, 512, 64);
  geometry.chunk_bytes = std::max(round_up(ceil_div(bytes, 2), 256), kLeast);
  return geometry;
}
Geometry one_shot_copy_engine_geometry(const Extent& extent) {
  return copy_engine_geometry(extent.bytes);
}
Geometry two_shot_copy_engine_geometry(const Extent& extent) {
  return copy_engine_geometry(share_of(extent));
}

double one_shot_wire(int ranks) { return ranks - 1; }
// Loads of one peer alone reach less than those of several, and than stores: 242 of 330 GB/s on 2
// H200s.
double one_shot_loads_wire(int ranks) { return ranks == 2 ? 1.36 : one_shot_wire(ranks); }
double one_shot_local(int) { return 2; }
double two_shot_wire(int ranks) { return 2.0 * (ranks - 1) / ranks; }
// The same bytes; but both directions leave over the same links, and large messages are slower for
// it. As much as has the two rings cross where they did on 3 and 4 H200s, between 8 and 16 MiB.
double ring_both_ways_wire(int ranks) { return (ranks > 2 ? 1.05 : 1) * two_shot_wire(ranks); }
double two_shot_local(int ranks) { return 2.0 / ranks; }
// On the host words are stored and loaded one by one, in own slots as well: measured on 2 ranks of
// a virtual machine, 0.16 ns a byte each time, as much as memcpy takes for two; and below 1 KiB 0.3
// us more than one_shot takes, and 0.9 us more than two_shot.
double one_shot_push_local(int ranks) { return 7 * ranks + 1; }
double two_shot_push_local(int) { return 16; }
double two_shot_staged_local(int) { return 2; }
double ring_local(int) { return 5; }
double one_shot_copy_engine_local(int) { return 4; }
double two_shot_copy_engine_local(int ranks) { return 2.0 + 2.0 / ranks; }
// Not measured by anybody here: each rank's input goes out once for every rank that asks for it.
double multicast_one_shot_wire(int ranks) { return ranks; }
double multicast_two_shot_wire(int ranks) { return 1 + 1.0 / ranks; }

constexpr Algorithm kRows[] = {
    {.id = "all_reduce/one_shot",
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     .cost = {.steps = 4, .wire = one_shot_loads_wire, .local = one_shot_local},
     .text = "every rank reads everybody's input and reduces all of it",
     .in_place_needs_staging = true,
     .takes = takes_everything,
     .geometry = one_shot_geometry,
     .host = host_all_reduce_one_shot<HostTeam>,
     .cuda = cuda_all_reduce_one_shot},
    {.id = "all_reduce/two_shot",
     .family = Family::kTwoShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     .cost = {.steps = 5, .wire = two_shot_wire, .local = two_shot_local},
     .text = "each rank reduces its shard of everybody's input and writes it to everyone",
     .peers_write_output = true,
     .takes = takes_everything,
     .geometry = two_shot_geometry,
     .host = host_all_reduce_two_shot<HostTeam>,
     .cuda = cuda_all_reduce_two_shot},
    {.id = "all_reduce/one_shot_push",
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     .cost = {.steps = 1.4, .host_steps = 5.5, .wire = one_shot_wire, .local = one_shot_push_local},
     .text = "every rank sends its input to everybody, in words that are their own flags",
     .peers_read_input = false,
     .starts_early = true,
     .packets = whole_packets,
     .takes = takes_no_multipliers,
     .geometry = one_shot_push_geometry,
     .host = host_all_reduce_one_shot_push<HostTeam>,
     .cuda = cuda_all_reduce_one_shot_push},
    {.id = "all_reduce/two_shot_push",
     .family = Family::kTwoShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     .cost = {.steps = 1.8,
              .steps_per_rank = 0.3,
              .host_steps = 9,
              .wire = two_shot_wire,
              .local = two_shot_push_local},
     .text = "every rank sends each rank its share, which sends the sum to everybody, likewise",
     .peers_read_input = false,
     .starts_early = true,
     .packets = shared_packets,
     .takes = takes_no_multipliers,
     .geometry = two_shot_push_geometry,
     .host = host_all_reduce_two_shot_push<HostTeam>,
     .cuda = cuda_all_reduce_two_shot_push},
    {.id = "all_reduce/two_shot_staged",
     .family = Family::kTwoShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     // Of one pass, as measured on 2 H200s.
     .cost = {.steps = 7.8, .wire = two_shot_wire, .local = two_shot_staged_local},
     .text = "every rank pushes each rank its share, which pushes the sum to everyone, in passes",
     .peers_read_input = false,
     .peers_write_output = true,
     .pushes_through_staging = true,
     .only_where_measured = true,
     .takes = takes_everything,
     .geometry = two_shot_geometry,
     .host = host_all_reduce_two_shot_staged<HostTeam>,
     .cuda = cuda_all_reduce_two_shot_staged},
    {.id = "all_reduce/two_shot_tma",
     .family = Family::kTwoShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     // Of one pass, as measured on 2 H200s.
     .cost = {.steps = 9.4, .wire = two_shot_wire, .local = two_shot_staged_local},
     .text = "as two_shot_staged, by bulk copies, which take few multiprocessors",
     .peers_read_input = false,
     .peers_write_output = true,
     .pushes_through_staging = true,
     .only_where_measured = true,
     .least_compute = 90,
     .min_threads = 64,
     .shared_bytes = kBulkBytes,
     .takes = takes_everything,
     .geometry = bulk_geometry,
     .host = host_all_reduce_two_shot_tma<HostTeam>,
     .cuda = cuda_all_reduce_two_shot_tma},
    {.id = "all_reduce/one_shot_copy_engine",
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = 2,
     .max_ranks_cuda = 2,
     .order = Order::kRankOrder,
     // Three kernels, copies, and what they wait for each other, as measured on 2 H200s.
     .cost = {.steps = 18.8,
              .host_steps = 4,
              .wire = one_shot_wire,
              .local = one_shot_copy_engine_local},
     .text = "two ranks fetch each other's input by copy engine, and add",
     .peers_write_output = true,
     .in_place_needs_staging = true,
     .only_where_measured = true,
     .takes = takes_no_multipliers,
     .geometry = one_shot_copy_engine_geometry,
     .host = host_all_reduce_one_shot_copy_engine<HostTeam>,
     .cuda = cuda_all_reduce_copy_engine,
     .program = all_reduce_one_shot_copy_engine},
    {.id = "all_reduce/two_shot_copy_engine",
     .family = Family::kTwoShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     // Four kernels, copies, and what they wait for each other: measured on 2 H200s, where each
     // share takes two copies more.
     .cost = {.steps = 19,
              .steps_per_rank = 8,
              .host_steps = 6,
              .wire = two_shot_wire,
              .local = two_shot_copy_engine_local},
     .text = "each rank fetches its share of every input by copy engine, and then everybody's sums",
     .peers_write_output = true,
     .in_place_needs_staging = true,
     .only_where_measured = true,
     .takes = takes_no_multipliers,
     .geometry = two_shot_copy_engine_geometry,
     .host = host_all_reduce_two_shot_copy_engine<HostTeam>,
     .cuda = cuda_all_reduce_copy_engine,
     .program = all_reduce_two_shot_copy_engine},
    {.id = "all_reduce/ring",
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kSameOnAllRanks,
     // Each of 2 (n - 1) passes takes as long as four hops: stores, a fence behind them, a flag.
     .cost = {.steps = -6, .steps_per_rank = 8.2, .wire = two_shot_wire, .local = ring_local},
     .text = "sums go from rank to rank, chunk by chunk, and come around again",
     .peers_read_input = false,
     .peers_write_output = true,
     .in_place_needs_staging = true,
     .ring_directions = 1,
     .min_threads = 64,
     .takes = rings_take,
     .geometry = ring_geometry,
     .host = host_all_reduce_ring<HostTeam>,
     .cuda = cuda_all_reduce_ring},
    {.id = "all_reduce/ring_bidirectional",
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kSameOnAllRanks,
     .cost =
         {.steps = -4, .steps_per_rank = 6.85, .wire = ring_both_ways_wire, .local = ring_local},
     .text = "as ring, but what is summed up comes around both ways",
     .peers_read_input = false,
     .peers_write_output = true,
     .in_place_needs_staging = true,
     .ring_directions = 2,
     .min_threads = 64,
     .takes = rings_take,
     .geometry = ring_geometry,
     .host = host_all_reduce_ring<HostTeam>,
     .cuda = cuda_all_reduce_ring},
    {.id = "all_reduce/multicast_one_shot",
     .family = Family::kMulticast,
     .needs = kNeedsPeerAccess | kNeedsMulticast,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kNone,
     .cost = {.steps = 4, .wire = multicast_one_shot_wire, .local = one_shot_local},
     .text = "every rank has the switch reduce everybody's input",
     .in_place_needs_staging = true,
     .takes = switch_reduces,
     .geometry = one_shot_geometry,
     .host = host_all_reduce_multicast_one_shot<HostTeam>,
     .cuda = cuda_all_reduce_multicast_one_shot},
    {.id = "all_reduce/multicast_two_shot",
     .family = Family::kMulticast,
     .needs = kNeedsPeerAccess | kNeedsMulticast,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kSameOnAllRanks,
     .cost = {.steps = 5, .wire = multicast_two_shot_wire, .local = two_shot_local},
     .text = "each rank has the switch reduce its shard, and store it to everyone",
     .peers_write_output = true,
     .takes = switch_reduces,
     .geometry = two_shot_geometry,
     .host = host_all_reduce_multicast_two_shot<HostTeam>,
     .cuda = cuda_all_reduce_multicast_two_shot},
    {.id = "all_reduce/nccl",
     .family = Family::kNccl,
     .needs = kNeedsNccl,
     .max_ranks_cuda = 1 << 20,
     .order = Order::kNone,
     // Fitted to what it was measured to take at 1 KiB, 2 to 8 ranks.
     .cost = {.steps = 2.5, .steps_per_rank = 1.6, .wire = two_shot_wire},
     .text = "NVIDIA's library, where it is installed",
     .peers_read_input = false,
     .takes = nccl_takes,
     .geometry = library_geometry},
    {.id = "all_reduce/nccl_window",
     .family = Family::kNccl,
     .needs = kNeedsPeerAccess | kNeedsNccl | kNeedsNcclWindows,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kNone,  // NCCL documents none
     // Not measured yet: as two_shot, which its kernels for large messages are.
     .cost = {.steps = 5, .wire = two_shot_wire},
     .text = "NCCL's symmetric kernels, on memory that it knows as windows",
     .peers_read_input = false,
     .only_where_measured = true,
     .takes = nccl_windows_take,
     .geometry = library_geometry},
};

}  // namespace

std::span<const Algorithm> all_reduce_rows() { return kRows; }

}  // namespace tutti
