// reduce_scatter_v/pull: reduce_scatter/pull of pieces that are as long as they like.
//
//   phase 1  stage in: a slot of every rank's piece (only for inputs that peers cannot address);
//            publish the counts (only where the device alone knows them)
//   phase 2  barrier: every input is there
//   phase 3  compare the counts: all ranks must have the same
//   phase 4  load each tile of my piece from all ranks, reduce, store to own output
//   phase 5  barrier: nobody reads my input any more
//
// Cost: 4 hops, or 6 with counts on the device; what the others have of my piece over this rank's
// links. In place is safe as in reduce_scatter/pull.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/reduction.hpp"
#include "algorithms/takes.hpp"
#include "algorithms/uneven.hpp"
#include "device/counts.hpp"

namespace tutti {

struct ReduceScatterVPull {
  using Kernel = PeerKernel;
  using Types = EveryReduction;
  using Beside = PieceCounts;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "reduce_scatter_v/pull",
      .collective = Collective::kReduceScatterV,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      .cost = {.steps = 4, .wire = pieces_wire, .local = own_piece_local},
      .text = "each rank reads its block of every rank's input and reduces it",
      .publishes_counts = true,
      .takes = takes_everything,
      .geometry = two_shot_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises{.loads = kMaxCudaRanks, .stores = 1, .barriers = 2};
  static constexpr Traffic kTraffic{.hops = "4", .wire = "(n-1)/n B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work, const PieceCounts& counts);
};

// The pieces of an input, which are alike on every rank.
class Parts {
 public:
  TUTTI_BODY explicit Parts(const PieceCounts& counts) : counts_(counts) {}

  TUTTI_BODY Range of(int rank) const {
    if (!counts_.is_on_device()) return counts_.sent[rank];
    Range part;
    TUTTI_NO_UNROLL
    for (int r = 0; r < rank; ++r) part.first += counts_.given[r];
    part.count = counts_.given[rank];
    return part;
  }
  TUTTI_BODY bool fit(const KernelArgs& work) const {
    for (int r = 0; r < work.ranks; ++r) {
      if (counts_.sent_to(r) > piece_of(work)) return false;
    }
    return true;
  }
  template <class Team>
  TUTTI_BODY void publish(Team& team) const {
    team.publish_counts([&](int rank) { return published_count(counts_.sent_to(rank)); });
  }
  template <class Team>
  TUTTI_BODY Outcome compare(Team& team, const KernelArgs& work) const {
    const std::size_t most = piece_of(work);
    const auto load = [&](int from, int to) { return team.published(from, to); };
    return team.learn_counts(load, [&](int, int to, std::uint32_t count) {
      if (count > most) return CountVerdict{false, FailureReason::kTooMany, most};
      const std::size_t own = counts_.sent_to(to);
      return CountVerdict{count == own, FailureReason::kOtherCount, own};
    });
  }

 private:
  const PieceCounts& counts_;
};

// The tiles of each slot that block b stages are the tiles that block b of its rank reads.
template <class T, class Team>
TUTTI_BODY void stage_parts(Team& team, const KernelArgs& work, const Parts& parts, Range pass) {
  TUTTI_NO_UNROLL
  for (int r = 0; r < work.ranks; ++r) {
    const Range whole = parts.of(r);
    const std::byte* const from = work.input + whole.first * sizeof(T);
    std::byte* const slot =
        work.staging.at[work.rank] + static_cast<std::size_t>(r) * pass.count * sizeof(T);
    std::byte* const to = slot - pass.first * sizeof(T);
    team.template copy_between<T>(cut(pass, whole.count), from, to);
  }
}

template <class Reduction, class Team>
TUTTI_BODY Outcome ReduceScatterVPull::run(Team& team, const KernelArgs& work,
                                           const PieceCounts& counts) {
  using T = typename Reduction::Element;
  const Parts parts(counts);
  const bool compares = !counts.agreed, fits = !compares || parts.fit(work);
  const Range own = fits ? parts.of(work.rank) : Range{};
  const std::size_t longest = piece_of(work), mine = static_cast<std::size_t>(work.rank);
  const std::size_t slot = work.stage_input ? slot_of(work, work.ranks, sizeof(T)) : longest;
  publish_scalar<Reduction>(team, work);
  if (compares) parts.publish(team);

  for (std::size_t done = 0; done < longest || done == 0; done += slot) {
    const Range part = cut(Range{done, slot}, own.count);
    // From a place in the output to the same in inputs, or in slots, which start at each pass anew.
    const std::size_t shift = work.stage_input ? mine * slot - done : own.first;
    if (work.stage_input && fits) stage_parts<T>(team, work, parts, {done, slot});

    team.arrive(compares ? Publish::kStores : first_publish(work));
    const auto buffers = team.buffers(shift * sizeof(T));
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;
    if (compares && done == 0 && parts.compare(team, work) != Outcome::kDone) {
      return Outcome::kFailed;
    }

    const Scalars<Reduction, Team::kMaxRanks> scalars(team, work);
    team.template for_each_tile<T>(part, [&](auto access, TileAt tile) {
      const TileAt at{tile.first + shift, tile.count};
      const auto value = reduce_tile<Reduction>(team, buffers.inputs, access, at, scalars);
      team.template store<T>(work.output, access, tile, value);
    });

    if (team.barrier(Publish::kLoads) != Outcome::kDone) return Outcome::kFailed;
    if (slot == 0) break;
  }
  return team.finish();
}

}  // namespace tutti
