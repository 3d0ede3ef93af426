// all_reduce/two_shot: each rank reduces its shard, then writes it to everyone.
//
//   phase 1  stage in (only for buffers that peers cannot address)
//   phase 2  barrier: every input is there
//   phase 3  load each tile of my shard from all ranks, reduce, store to all ranks
//   phase 4  barrier: every shard is written, and nobody reads my input any more
//   phase 5  stage out (as phase 1)
//
// Cost: 5 hops (two flags, a load's way there and back, a store), 2(n-1)/n x bytes over each link.
// In place is safe: an element is read by the one thread, on one rank, that then overwrites it.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/epilogue.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/reduction.hpp"
#include "algorithms/takes.hpp"
#include "device/team.hpp"

namespace tutti {

struct AllReduceTwoShot {
  using Kernel = PeerKernel;
  using Types = EveryReduction;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static double local(int ranks) { return 2.0 / ranks; }

  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce/two_shot",
      .family = Family::kTwoShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      .cost = {.steps = 5, .wire = two_shot_wire, .local = local},
      .text = "each rank reduces its shard of all inputs and writes it to all ranks",
      .peers_write_output = true,
      .takes = takes_everything,
      .geometry = two_shot_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises{
      .loads = kMaxCudaRanks, .stores = kMaxCudaRanks, .barriers = 2, .stack_bytes = 40};
  static constexpr Traffic kTraffic{.hops = "5", .wire = "2 (n-1)/n B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team, class Epilogue = NoEpilogue>
TUTTI_BODY Outcome all_reduce_two_shot(Team& team, const KernelArgs& work) {
  using T = typename Reduction::Element;
  constexpr std::size_t kUnit = Team::template tile_elements<T>();
  const std::size_t chunk = chunk_elements(work, sizeof(T));
  const Publish entry = first_publish(work);
  publish_scalar<Reduction>(team, work);

  for (std::size_t done = 0; done < work.count || done == 0; done += chunk) {
    const std::size_t origin = work.stage_input ? done : 0;  // staging starts at each chunk anew
    // Shares of a whole chunk also in the last, shorter one: a place in staging stays with one
    // block, since the blocks of a rank do not wait for each other between chunks.
    const auto share = [&](int rank) {
      return cut(shard(Range{done, chunk}, rank, work.ranks, kUnit), work.count);
    };

    // The tiles that block b stages are the tiles that block b of their owner reads.
    if (work.stage_input) {
      for (int r = 0; r < work.ranks; ++r) team.template copy_in<T>(share(r), origin);
    }

    team.arrive(entry);
    const auto buffers = team.buffers();
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;

    const Scalars<Reduction, Team::kMaxRanks> scalars(team, work);
    team.template for_each_tile<T>(share(work.rank), [&](auto access, TileAt tile) {
      const TileAt at{tile.first - origin, tile.count};
      const auto operand = Epilogue::template load<T>(team, work, tile);
      const auto value = reduce_tile<Reduction>(team, buffers.inputs, access, at, scalars);
      team.template store_all<T>(buffers.outputs, access, at,
                                 Epilogue::template apply<T, Team>(value, operand));
    });

    if (team.barrier(Publish::kStores) != Outcome::kDone) return Outcome::kFailed;

    if (work.stage_output) {
      for (int r = 0; r < work.ranks; ++r) team.template copy_out<T>(share(r), origin);
    }
    if (chunk == 0) break;
  }
  return team.finish();
}

template <class Reduction, class Team>
TUTTI_BODY Outcome AllReduceTwoShot::run(Team& team, const KernelArgs& work) {
  return all_reduce_two_shot<Reduction>(team, work);
}

}  // namespace tutti
