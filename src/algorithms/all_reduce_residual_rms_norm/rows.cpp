#include "algorithms/all_reduce_residual_rms_norm/rows.hpp"

#include <algorithm>

#include "algorithms/geometry.hpp"
#include "algorithms/takes.hpp"
#include "base/units.hpp"
#include "device/kernel_args.hpp"

namespace tutti {

bool is_normalised(DataType dtype, OpKind op) {
  return op == OpKind::kSum && (dtype == DataType::kFloat32 || dtype == DataType::kFloat16 ||
                                dtype == DataType::kBfloat16);
}

namespace {

// Of the packets of a token: a whole number of the host's tiles, the largest ones.
constexpr std::size_t kTokenUnit = 1 * KiB;

std::size_t tokens_of(const Extent& extent) {
  return extent.token_bytes == 0 ? 0 : extent.bytes / extent.token_bytes;
}

// A thread for each of a token's tiles of 16 bytes.
int threads_of(const Extent& extent, std::size_t cluster) {
  const std::size_t tiles = ceil_div(extent.token_bytes, 16 * cluster);
  return static_cast<int>(std::clamp<std::size_t>(tiles, 32, kMaxThreads));
}

// A cluster for each of so many tokens as long as there are blocks. Of as many as leave each block
// 128 threads: so all_reduce is best at the size of one token.
Geometry clusters_for(const Extent& extent, std::size_t tokens) {
  tokens = std::clamp<std::size_t>(tokens, 1, kMaxBlocks);
  std::size_t cluster = kMaxClusterBlocks;
  while (cluster > 1 &&
         (tokens * cluster > kMaxBlocks || extent.token_bytes < cluster * 128 * 16)) {
    cluster /= 2;
  }
  return {static_cast<int>(tokens * cluster), threads_of(extent, cluster)};
}

Geometry one_shot_push_geometry(const Extent& extent) {
  return clusters_for(extent, tokens_of(extent));
}

int one_shot_push_cluster(const KernelArgs& work) {
  return cluster_of(work.blocks, work.norm.tokens);
}

PacketUse one_shot_packets(const Extent& on_wire) {
  return {tokens_of(on_wire) * round_up(on_wire.token_bytes, kTokenUnit), on_wire.ranks - 1};
}

// The grids of all_reduce's rows, whose blocks do not care for tokens.
Geometry one_shot_push_split_geometry(const Extent& extent) { return push_spread(extent.bytes); }
Geometry two_shot_push_geometry(const Extent& extent) { return push_spread(share_of(extent)); }

// Whether all of it is vectors of 16 bytes; of output with 8 bits, as many elements.
bool has_whole_tiles(const KernelArgs& work, std::size_t element_bytes) {
  const auto bits = [](const std::byte* buffer) {
    return reinterpret_cast<std::uintptr_t>(buffer);
  };
  const std::size_t narrower = is_fp8(work.norm.output_dtype) ? element_bytes : 1;
  const std::uintptr_t all = bits(work.output) | bits(work.norm.weight) |
                             bits(work.norm.output) * narrower | work.norm.hidden * element_bytes;
  return all % 16 == 0;
}

// A block for each token, of which a thread holds two tiles (measured on 2 H200s: with one or four
// it takes up to 5 % longer).
Follower::Grid normalising_grid(const KernelArgs& work, std::size_t element_bytes) {
  Follower::Grid grid;
  grid.kernel = !has_whole_tiles(work, element_bytes)             ? kAnyTiles
                : work.norm.output_dtype == DataType::kFloat8E4M3 ? kWholeTilesToE4M3
                : work.norm.output_dtype == DataType::kFloat8E5M2 ? kWholeTilesToE5M2
                                                                  : kWholeTiles;
  const std::size_t tiles = ceil_div(work.norm.hidden * element_bytes, 16);
  grid.threads = static_cast<int>(std::clamp<std::size_t>(ceil_div(tiles, 2), 32, kMaxThreads));
  grid.blocks = std::max(static_cast<int>(work.norm.tokens), 1);
  return grid;
}

double one_shot_wire(int ranks) { return ranks - 1; }
double one_shot_push_local(int ranks) { return 7 * ranks + 3; }
double two_shot_wire(int ranks) { return 2.0 * (ranks - 1) / ranks; }
double two_shot_local(int ranks) { return 3.0 / ranks + 2; }
double two_shot_push_local(int) { return 18; }

constexpr Follower kNormalise{.grid = normalising_grid,
                              .host = host_normalise_tokens<HostTeam>,
                              .cuda = cuda_normalise_tokens,
                              .kernels = kNormalisers};

constexpr Algorithm kRows[] = {
    {.id = "all_reduce_residual_rms_norm/one_shot_push",
     .collective = Collective::kAllReduceResidualRmsNorm,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     // As measured on 2 H200s, and for more ranks with an earlier version on 4.
     .cost = {.steps = 1.7,
              .steps_per_rank = 0.55,
              .host_steps = 5.5,
              .wire = one_shot_wire,
              .local = one_shot_push_local},
     .text = "every rank sends its input to everybody in packets, and normalises all of it",
     .peers_read_input = false,
     .starts_early = true,
     .packets = one_shot_packets,
     .cluster = one_shot_push_cluster,
     .takes = is_normalised,
     .geometry = one_shot_push_geometry,
     .host = host_all_reduce_residual_rms_norm_one_shot_push<HostTeam>,
     .cuda = cuda_all_reduce_residual_rms_norm_one_shot_push},
    {.id = "all_reduce_residual_rms_norm/one_shot_push_split",
     .collective = Collective::kAllReduceResidualRmsNorm,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     // Of rows that are split: all_reduce's, and what the second kernel took on 2 H200s.
     .cost = {.steps = 3.4, .host_steps = 7, .wire = one_shot_wire, .local = one_shot_push_local},
     .text = "all_reduce's one_shot_push with the residual, and a kernel behind it that normalises",
     .peers_read_input = false,
     .starts_early = true,
     .packets = whole_packets,
     .takes = is_normalised,
     .geometry = one_shot_push_split_geometry,
     .host = host_all_reduce_residual_rms_norm_one_shot_push_split<HostTeam>,
     .cuda = cuda_all_reduce_residual_rms_norm_one_shot_push_split,
     .then = kNormalise},
    {.id = "all_reduce_residual_rms_norm/two_shot",
     .collective = Collective::kAllReduceResidualRmsNorm,
     .family = Family::kTwoShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     .cost = {.steps = 6.4, .wire = two_shot_wire, .local = two_shot_local},
     .text = "all_reduce's two_shot with the residual, and a kernel behind it that normalises",
     .peers_write_output = true,
     .takes = is_normalised,
     .geometry = two_shot_geometry,
     .host = host_all_reduce_residual_rms_norm_two_shot<HostTeam>,
     .cuda = cuda_all_reduce_residual_rms_norm_two_shot,
     .then = kNormalise},
    {.id = "all_reduce_residual_rms_norm/two_shot_push",
     .collective = Collective::kAllReduceResidualRmsNorm,
     .family = Family::kTwoShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     .cost = {.steps = 3.8,
              .steps_per_rank = 0.3,
              .host_steps = 10.5,
              .wire = two_shot_wire,
              .local = two_shot_push_local},
     .text = "all_reduce's two_shot_push with the residual, and a kernel behind it that normalises",
     .peers_read_input = false,
     .starts_early = true,
     .packets = shared_packets,
     .takes = is_normalised,
     .geometry = two_shot_push_geometry,
     .host = host_all_reduce_residual_rms_norm_two_shot_push<HostTeam>,
     .cuda = cuda_all_reduce_residual_rms_norm_two_shot_push,
     .then = kNormalise},
};

}  // namespace

std::span<const Algorithm> all_reduce_residual_rms_norm_rows() { return kRows; }

}  // namespace tutti
