// reduce_scatter/push_per_peer: as push, by blocks that are bound to one rank each
// (algorithms/push_per_peer.hpp): those bound to this one reduce its piece, while the others push.
// They are few, so bulk copies fetch for them what came.
//
// Cost: 3 hops (two flags, a store), and 2 for each further pass; (n-1)/n x bytes over each rank's
// links. No peer touches a buffer: any will do. In place is safe: a tile of its own piece has been
// fetched before it is overwritten, and nothing of that is pushed.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/push_per_peer.hpp"
#include "algorithms/reduce_scatter/push.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct ReduceScatterPushPerPeer {
  using Kernel = BulkFetchKernel;
  using Types = WideReductions;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "reduce_scatter/push_per_peer",
      .collective = Collective::kReduceScatter,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      .cost = {.steps = 5.2, .wire = pieces_wire, .local = times<1>},
      .text = "as push, but each thread block serves one peer",
      .peers_read_input = false,
      .pushes_through_staging = true,
      .only_where_measured = true,
      .least_compute = 90,
      .min_threads = 64,
      .shared_bytes = kBulkBytes,
      .takes = takes_no_bytes,
      .geometry = per_peer_geometry,
      .host = host,
      .cuda = cuda};
  // Some push, and others reduce what bulk copies bring.
  static constexpr KernelPromises kPromises{.loads = 8,
                                            .stores = 8,
                                            .barriers = 2,
                                            .stack_bytes = 128,
                                            .block_fences = true,
                                            .bulk_loads = true};
  static constexpr Traffic kTraffic{.hops = "3, and 2 for each further pass", .wire = "(n-1)/n B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team>
TUTTI_BODY Outcome ReduceScatterPushPerPeer::run(Team& team, const KernelArgs& work) {
  using T = typename Reduction::Element;
  const BoundPasses passes(work, team.block(), sizeof(T), true);
  publish_scalar<Reduction>(team, work);
  team.arrive(first_publish(work));
  (void)team.buffers(passes.piece * sizeof(T));  // which accesses pieces allow
  if (team.wait() != Outcome::kDone) return Outcome::kFailed;
  const Scalars<Reduction, Team::kMaxRanks> scalars(team, work);

  const auto push = [&](int rank, const BoundPass& pass) {
    if (rank == work.rank) return;
    const std::byte* const from = work.input + pass.first_of(rank) * sizeof(T);
    std::byte* const room = work.staging.at[rank] + pass.place(work.rank) * sizeof(T);
    team.template copy_alone<T>({0, pass.part.count}, from, room);
  };
  const auto take = [&](const BoundPass& pass) {
    const auto reduce = [&](auto access, TileAt tile, const auto& part_of) {
      const auto value = reduce_one_by_one<Reduction>(team, scalars, part_of);
      const TileAt at{pass.part.first + tile.first, tile.count};
      team.template store<T>(work.output, access, at, value);
    };
    const auto parts = pushed_parts<T, Team>(work, pass);
    return team.template bulk_fetch<T>(parts, Range{0, pass.part.count}, reduce);
  };
  return push_bound(team, work, passes, push, take);
}

}  // namespace tutti
