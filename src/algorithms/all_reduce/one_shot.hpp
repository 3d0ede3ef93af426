// all_reduce/one_shot: every rank reads everybody's input and reduces all of it.
//
//   phase 1  stage in (only for inputs that peers cannot address)
//   phase 2  barrier: every input is there
//   phase 3  load each tile from all ranks, reduce, store to own output
//   phase 4  barrier: nobody reads my input any more
//
// Cost: 4 hops (two flags, and a load's way there and back), (n-1) x bytes over each rank's links.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/reduction.hpp"
#include "algorithms/takes.hpp"
#include "device/team.hpp"

namespace tutti {

struct AllReduceOneShot {
  using Kernel = PeerKernel;
  using Types = EveryReduction;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  // Measured as two_shot_geometry() was, of the whole message.
  static Geometry geometry(const Extent& extent) {
    const std::size_t bytes = extent.bytes;
    if (bytes <= 64 * KiB) return spread(bytes, 64, 64);
    if (bytes <= 256 * KiB) return spread(bytes, 128, 64);
    return spread(bytes, 256, 64);
  }
  // Loads of one peer alone reach less than those of several, and than stores: 242 of 330 GB/s on 2
  // H200s.
  static double wire(int ranks) { return ranks == 2 ? 1.36 : one_shot_wire(ranks); }

  static constexpr Algorithm kAlgorithm{.id = "all_reduce/one_shot",
                                        .family = Family::kOneShot,
                                        .needs = kNeedsPeerAccess,
                                        .max_ranks_host = kMaxRanks,
                                        .max_ranks_cuda = kMaxCudaRanks,
                                        .order = Order::kRankOrder,
                                        .cost = {.steps = 4, .wire = wire, .local = times<2>},
                                        .text = "every rank reads all inputs and reduces all of it",
                                        .in_place_needs_staging = true,
                                        .takes = takes_everything,
                                        .geometry = geometry,
                                        .host = host,
                                        .cuda = cuda};
  static constexpr KernelPromises kPromises{.loads = kMaxCudaRanks, .stores = 1, .barriers = 2};
  static constexpr Traffic kTraffic{.hops = "4", .wire = "(n-1) B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team>
TUTTI_BODY Outcome AllReduceOneShot::run(Team& team, const KernelArgs& work) {
  using T = typename Reduction::Element;
  const std::size_t chunk = chunk_elements(work, sizeof(T));
  const Publish entry = first_publish(work);
  publish_scalar<Reduction>(team, work);

  for (std::size_t done = 0; done < work.count || done == 0; done += chunk) {
    const Range part{done, work.count - done < chunk ? work.count - done : chunk};
    const std::size_t origin = work.stage_input ? done : 0;  // staging starts at each chunk anew

    if (work.stage_input) team.template copy_in<T>(part, origin);

    team.arrive(entry);
    const auto buffers = team.buffers();
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;

    const Scalars<Reduction, Team::kMaxRanks> scalars(team, work);
    team.template for_each_tile<T>(part, [&](auto access, TileAt tile) {
      const TileAt from{tile.first - origin, tile.count};
      const auto value = reduce_tile<Reduction>(team, buffers.inputs, access, from, scalars);
      team.template store<T>(work.output, access, tile, value);
    });

    if (team.barrier(Publish::kLoads) != Outcome::kDone) return Outcome::kFailed;
    if (chunk == 0) break;
  }
  return team.finish();
}

}  // namespace tutti
