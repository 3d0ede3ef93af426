// all_reduce_residual_rms_norm/one_shot_push: every rank sends its input to everybody, and reduces
// and normalises what it is sent. A block (on GPUs a cluster of them) has whole tokens.
//
//   phase 1  push each tile of my tokens into my slot at every other rank
//   phase 2  for each token: poll each tile of every other rank, reduce, add the residual, store
//            residual_output; sum up the squares over the block; normalise, store to output
//
// Cost: 1 hop (a packet) and a block's sum, (n-1) x bytes over each rank's links. Nobody touches
// another rank's buffers, so any will do. In place is safe: a tile of an output is stored by the
// thread that has pushed the same tile of the input, or loaded that of the residual. What a thread
// needs of its first tile is loaded before anything is waited for.
#pragma once

#include "algorithms/all_reduce_residual_rms_norm/token.hpp"
#include "algorithms/all_reduce_residual_rms_norm/tokens_of.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"

namespace tutti {

struct AllReduceResidualRmsNormOneShotPush {
  using Kernel = TokenKernel;
  using Types = NormalisedSums;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static Geometry geometry(const Extent& extent) { return clusters_for(extent, tokens_of(extent)); }
  static int cluster(const KernelArgs& work) { return cluster_of(work.blocks, work.norm.tokens); }
  static PacketUse packets(const Extent& on_wire) {
    return {tokens_of(on_wire) * round_up(on_wire.token_bytes, kTokenUnit), on_wire.ranks - 1};
  }
  static double local(int ranks) { return 7 * ranks + 3; }

  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce_residual_rms_norm/one_shot_push",
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
               .local = local},
      .text = "every rank sends its input to all ranks in packets and normalises all tokens",
      .peers_read_input = false,
      .starts_early = true,
      .packets = packets,
      .cluster = cluster,
      .takes = is_normalised,
      .geometry = geometry,
      .host = host,
      .cuda = cuda};
  // Once where all accesses are wide, once where they are not. For any number of ranks it puts
  // aside what it knows of tokens, over the same calls. With stores to a cluster, a failure's fence
  // is one of the block, too.
  static constexpr KernelPromises kPromises{.loads = kMaxCudaRanks,
                                            .narrow = 1,
                                            .loops = 2,
                                            .stack_bytes = 104,
                                            .block_fences = true,
                                            .local = 2};
  static constexpr Traffic kTraffic{.hops = "1, and a block's sum", .wire = "(n-1) B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team, class Access>
TUTTI_BODY Outcome rms_norm_one_shot_push(Team& team, const KernelArgs& work, Access access) {
  using T = typename Reduction::Element;
  using Words = typename Team::Words;
  const TokenWork<T, Team, Access> all(team, work, access);
  const auto& tokens = all.tokens;
  const Slice first = team.first_token(), first_tile = team.first_of_token();

  team.launch_wait();
  team.ask_launch();
  OwnTile<Words> own{};  // the tile that this thread comes to next
  all.load_own(first, first_tile, own);
  all.hold_weights();
  // A thread that may not begin meets the others of its block all the same.
  const bool open = team.open_packets() == Outcome::kDone;
  (void)team.for_each_token(open ? tokens.count : 0, [&](Slice token) {
    team.for_each_of_token(tokens.tiles, [&](Slice k) {
      const TileAt at = tokens.tile(token, k);
      const bool here = token == first && k == first_tile;
      const Words words = here ? own.input : all.load(work.input, at);
      team.template push_all<T>({0, token * tokens.tiles + k}, at.count, words);
    });
    return Outcome::kDone;
  });
  team.announce();
  team.launch_trigger();

  const Outcome outcome = team.for_each_token(tokens.count, [&](Slice token) {
    return all.normalise(token, [&](Slice k, TileAt at, Words& added) {
      if (!open) return Outcome::kFailed;
      typename Team::Column column;
      const auto count = [&](int) { return at.count; };
      const PacketAt place{0, token * tokens.tiles + k};
      if (team.template poll<T>(place, count, column) != Outcome::kDone) return Outcome::kFailed;
      team.place_own(column, own.input);
      const Words sum = reduce_column<Reduction>(team, column, at.count, 1.0);
      added = plus_residual<T, Team>(sum, own.residual);
      all.store(work.output, at, added);
      all.load_next(token, k, own);
      return Outcome::kDone;
    });
  });
  if (!open || outcome != Outcome::kDone) return Outcome::kFailed;
  return team.close_packets();
}

template <class Reduction, class Team>
TUTTI_BODY Outcome AllReduceResidualRmsNormOneShotPush::run(Team& team, const KernelArgs& work) {
  return team.template with_token_access<typename Reduction::Element>(
      work, [&](auto access) { return rms_norm_one_shot_push<Reduction>(team, work, access); });
}

}  // namespace tutti
