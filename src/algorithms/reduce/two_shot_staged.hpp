// reduce/two_shot_staged: every rank but the root is pushed a share, which it reduces and pushes to
// the root. Only stores cross the links, through staging.
//
//   barrier         every rank has begun, and is done with its staging of the operation before
//   for each pass k, and once more for the last sums
//     push k        my input of each other reducer's share, the next rank's first, into my slot
//     copy k - 2    root: sums from staging to output
//     reduce k - 1  my share, from my input and the others' slots; store it to the root
//     barrier k     every push k is there, and every sum k - 1
//   copy the last pass
//
// Every second block reduces first. Pushes go from the root and among the others, sums to the root:
// so links are busy both ways.
//
// Of two ranks the root is the one that reduces: its sums go to its output, and nobody meets behind
// the last of them.
//
// Passes take turns with two halves of staging; all_reduce/two_shot_staged says why that is right.
//
// Cost: 5 hops (three flags, two stores), and 2 for each further pass; 1 x bytes over each link. No
// peer touches a buffer: any will do. In place is safe: the root's output is written where its
// input was loaded passes ago, or by the thread that loads it.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/reduction.hpp"
#include "algorithms/rooted.hpp"
#include "algorithms/takes.hpp"
#include "device/packets.hpp"

namespace tutti {

struct ReduceTwoShotStaged {
  using Kernel = PeerKernel;
  using Types = EveryReduction;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  // Shares are dealt to all but the root.
  static Geometry geometry(const Extent& extent) {
    return two_shot_geometry({extent.bytes, std::max(extent.ranks - 1, 1), extent.token_bytes});
  }

  static constexpr Algorithm kAlgorithm{
      .id = "reduce/two_shot_staged",
      .collective = Collective::kReduce,
      .family = Family::kTwoShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      .cost = {.steps = 7, .wire = root_wire, .local = times<3>},
      .text = "every rank except the root reduces a share and stores it to the root; in passes",
      .peers_read_input = false,
      .pushes_through_staging = true,
      .takes = takes_everything,
      .geometry = geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises{
      .loads = kMaxCudaRanks, .stores = 1, .barriers = 2, .stack_bytes = 96};
  static constexpr Traffic kTraffic{.hops = "5, and 2 for each further pass", .wire = "B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team>
class ReduceBlock {
 public:
  using T = typename Reduction::Element;

  // So many elements of all shares go through a half of staging, which is a slot for every other
  // rank: for what it sends to be reduced, and at the root for its sums. None is for both.
  static TUTTI_BODY std::size_t longest(const KernelArgs& work) {
    const auto slots = static_cast<std::size_t>(work.ranks > 1 ? work.ranks - 1 : 1);
    return work.staging_bytes / (2 * slots * 16) * (16 / sizeof(T)) * slots;
  }

  TUTTI_BODY ReduceBlock(Team& team, const KernelArgs& work)
      : passes(work, sizeof(T), longest(work), true), team_(team), work_(work) {}

  TUTTI_BODY void push(std::size_t k) const {
    TUTTI_NO_UNROLL
    for (int step = 1; step < work_.ranks; ++step) {
      const int next = work_.rank + step;
      const int rank = next < work_.ranks ? next : next - work_.ranks;
      const Range share = passes.share_of(rank, k);
      std::byte* const slot = work_.staging.at[rank] + place(k, work_.rank, rank);
      team_.template for_each_tile<T>(Range{0, share.count}, [&](auto access, TileAt tile) {
        const auto part = team_.template load<T>(input_at(share.first), access, tile);
        team_.template store<T>(slot, access, tile, part);
      });
    }
  }

  TUTTI_BODY void reduce(std::size_t k, const Scalars<Reduction, Team::kMaxRanks>& scalars) const {
    const Range share = passes.share_of(work_.rank, k);
    Pointers<Team::kMaxRanks> from;
    TUTTI_UNROLL
    for (int r = 0; r < Team::kMaxRanks; ++r) {
      if (r >= work_.ranks) continue;
      from.at[r] = r == work_.rank ? const_cast<std::byte*>(input_at(share.first))
                                   : work_.staging.at[work_.rank] + place(k, r, work_.rank);
    }
    std::byte* const to = work_.rank == work_.root
                              ? work_.output + share.first * sizeof(T)
                              : work_.staging.at[work_.root] + place(k, work_.rank, work_.root);
    team_.template for_each_tile<T>(Range{0, share.count}, [&](auto access, TileAt tile) {
      const auto value = reduce_tile<Reduction, true>(team_, from, access, tile, scalars);
      team_.template store<T>(to, access, tile, value);
    });
  }

  // Of the root, which others have sent sums.
  TUTTI_BODY void copy_out(std::size_t k) const {
    TUTTI_NO_UNROLL
    for (int r = 0; r < work_.ranks; ++r) {
      const Range share = passes.share_of(r, k);
      if (r == work_.rank || share.count == 0) continue;
      // Where staging would begin in the message; before it, perhaps: sizes wrap.
      team_.template copy_out<T>(share, share.first - place(k, r, work_.rank) / sizeof(T));
    }
  }

  const RootedPasses passes;

 private:
  TUTTI_BODY const std::byte* input_at(std::size_t first) const {
    return work_.input + first * sizeof(T);
  }
  // In staging of rank `owner`: the slot of rank `source` in pass k.
  TUTTI_BODY std::size_t place(std::size_t k, int source, int owner) const {
    const std::size_t others = static_cast<std::size_t>(work_.ranks) - 1;
    return (k % 2 * others + tutti::slot_of(source, owner)) * passes.slot * sizeof(T);
  }

  Team& team_;
  const KernelArgs& work_;
};

template <class Reduction, class Team>
TUTTI_BODY Outcome ReduceTwoShotStaged::run(Team& team, const KernelArgs& work) {
  const ReduceBlock<Reduction, Team> block(team, work);
  const std::size_t number = block.passes.number;
  const bool copies = work.rank == work.root;
  publish_scalar<Reduction>(team, work);
  team.arrive(first_publish(work));
  (void)team.buffers();
  if (team.wait() != Outcome::kDone) return Outcome::kFailed;
  const Scalars<Reduction, Team::kMaxRanks> scalars(team, work);

  const bool sums_first = team.block() % 2 == 1;
  TUTTI_NO_UNROLL
  for (std::size_t k = 0; k <= number; ++k) {
    TUTTI_NO_UNROLL
    for (int turn = 0; turn < 2; ++turn) {
      if ((turn == 0) == sums_first) {
        if (k > 0) block.reduce(k - 1, scalars);
      } else {
        if (k < number) block.push(k);
        if (copies && k > 1) block.copy_out(k - 2);
      }
    }
    if (k == number && work.ranks <= 2) break;
    if (team.barrier(Publish::kStores) != Outcome::kDone) return Outcome::kFailed;
  }
  if (copies) block.copy_out(number - 1);
  return team.finish();
}

}  // namespace tutti
