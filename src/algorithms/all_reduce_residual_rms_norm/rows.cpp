#include "algorithms/all_reduce_residual_rms_norm/rows.hpp"

#include <algorithm>

#include "algorithms/catalogue.hpp"
#include "base/units.hpp"
#include "transport/work.hpp"

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

int one_shot_push_cluster(const Work& work) { return cluster_of(work.blocks, work.norm.tokens); }

PacketUse one_shot_packets(const Extent& on_wire) {
  return {tokens_of(on_wire) * round_up(on_wire.token_bytes, kTokenUnit), on_wire.ranks - 1};
}

std::size_t share_of(std::size_t tokens, int ranks) {
  return ceil_div(tokens, static_cast<std::size_t>(ranks));
}

// A cluster has a token of each rank.
Geometry two_shot_push_geometry(const Extent& extent) {
  return clusters_for(extent, share_of(tokens_of(extent), extent.ranks));
}

int two_shot_push_cluster(const Work& work) {
  return cluster_of(work.blocks, share_of(work.norm.tokens, work.ranks));
}

// Two slots for every other rank, one for what is to be added up and one for sums.
PacketUse two_shot_packets(const Extent& on_wire) {
  const std::size_t share = share_of(tokens_of(on_wire), on_wire.ranks);
  return {share * round_up(on_wire.token_bytes, kTokenUnit), 2 * (on_wire.ranks - 1)};
}

// A block for each token of a share, of which it adds up all and normalises as many of every rank.
Geometry two_shot_geometry(const Extent& extent) {
  const std::size_t share = share_of(tokens_of(extent), extent.ranks);
  return {static_cast<int>(std::clamp<std::size_t>(share, 1, kMaxBlocks)), threads_of(extent, 1)};
}

double one_shot_wire(int ranks) { return ranks - 1; }
double one_shot_push_local(int ranks) { return 7 * ranks + 3; }
double two_shot_wire(int ranks) { return 2.0 * (ranks - 1) / ranks; }
double two_shot_local(int ranks) { return 3.0 / ranks + 2; }
double two_shot_push_local(int) { return 18; }

constexpr Algorithm kRows[] = {
    {.id = "all_reduce_residual_rms_norm/one_shot_push",
     .collective = Collective::kAllReduceResidualRmsNorm,
     .family = Family::kOneShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     // As measured on 2 H200s, and for more ranks with an earlier version on 4.
     .cost = {.steps = 2.3,
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
     .host = host_all_reduce_residual_rms_norm_one_shot_push,
     .cuda = cuda_all_reduce_residual_rms_norm_one_shot_push},
    {.id = "all_reduce_residual_rms_norm/two_shot",
     .collective = Collective::kAllReduceResidualRmsNorm,
     .family = Family::kTwoShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     .cost = {.steps = 6.3,
              .steps_per_rank = 2.85,
              .host_steps = 6,
              .wire = two_shot_wire,
              .local = two_shot_local},
     .text = "each rank adds up its tokens and writes them to everyone, which normalises all",
     .peers_write_output = true,
     .takes = is_normalised,
     .geometry = two_shot_geometry,
     .host = host_all_reduce_residual_rms_norm_two_shot,
     .cuda = cuda_all_reduce_residual_rms_norm_two_shot},
    {.id = "all_reduce_residual_rms_norm/two_shot_push",
     .collective = Collective::kAllReduceResidualRmsNorm,
     .family = Family::kTwoShot,
     .needs = kNeedsPeerAccess,
     .max_ranks_host = kMaxRanks,
     .max_ranks_cuda = kMaxCudaRanks,
     .order = Order::kRankOrder,
     // As measured on 2 H200s; what more ranks take, as all_reduce's.
     .cost = {.steps = 4.6,
              .steps_per_rank = 0.3,
              .host_steps = 9,
              .wire = two_shot_wire,
              .local = two_shot_push_local},
     .text = "every rank sends each rank its tokens, which sends sums to everybody, in packets",
     .peers_read_input = false,
     .starts_early = true,
     .packets = two_shot_packets,
     .cluster = two_shot_push_cluster,
     .takes = is_normalised,
     .geometry = two_shot_push_geometry,
     .host = host_all_reduce_residual_rms_norm_two_shot_push,
     .cuda = cuda_all_reduce_residual_rms_norm_two_shot_push},
};

}  // namespace

std::span<const Algorithm> all_reduce_residual_rms_norm_rows() { return kRows; }

}  // namespace tutti
