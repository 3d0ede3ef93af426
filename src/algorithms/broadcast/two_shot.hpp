// broadcast/two_shot: the root deals its input out to the others, each of which stores its share to
// all of those.
//
//   barrier         every output may be written; staging is free
//   for each pass k, and once more for the last shares
//     root          load my input of pass k, store each rank its share, and all of it to own output
//     others        load my share of pass k - 1 from where the root has put it, store it to all but
//                   the root; copy pass k - 2 to output (only where peers cannot address that)
//     barrier k     every share of pass k is there, and all of pass k - 1
//   copy the last pass
//
// With two ranks there is nobody to pass a share on to: all of pass k is there behind barrier k.
// Through staging passes take turns with three slots: the root fills that of pass k behind barrier
// k - 1, to which its owner came after it had copied pass k - 3 out of it.
//
// Cost: 3 hops (two flags, a store), and 2 for each further pass; 1 x bytes over the root's links,
// and (n-2)/(n-1) x bytes over those of every other rank, at the same time but for one pass. Nobody
// touches the root's input, so any will do, and in place is safe.
#pragma once

#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/rooted.hpp"

namespace tutti {

struct BroadcastTwoShot {
  using Kernel = PeerKernel;
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  // Of a share; with more than two ranks in passes, of which one is on its way from the root while
  // the one before is passed on. Each costs a barrier, and the last one is passed on alone.
  static Geometry geometry(const Extent& extent) {
    const auto others = static_cast<std::size_t>(std::max(extent.ranks - 1, 1));
    const std::size_t share = ceil_div(extent.bytes, others);
    Geometry geometry = stores_geometry(share);
    constexpr std::size_t kPasses = 12, kLeast = 1 * MiB;
    if (extent.ranks > 2) {
      geometry.chunk_bytes = round_up(std::max(ceil_div(extent.bytes, kPasses), kLeast), 256);
    }
    return geometry;
  }

  static constexpr Algorithm kAlgorithm{
      .id = "broadcast/two_shot",
      .collective = Collective::kBroadcast,
      .family = Family::kTwoShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 5, .steps_per_rank = 0.5, .wire = root_wire, .local = times<2>},
      .text = "the root stores one share to each rank, which stores it to the others; in passes",
      .peers_read_input = false,
      .peers_write_output = true,
      .takes = moves,
      .geometry = geometry,
      .host = host,
      .cuda = cuda};
  // The root stores a share to one rank at a time, and to its own output.
  static constexpr KernelPromises kPromises{.loads = 1, .stores = 2, .barriers = 2};
  static constexpr Traffic kTraffic{.hops = "3, and 2 for each further pass",
                                    .wire = "B from the root, (n-2)/(n-1) B from others"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Team>
class BroadcastBlock {
 public:
  using T = std::uint8_t;

  static constexpr int kSlots = 3;

  // Where work.chunk_bytes says nothing, there is one pass.
  static TUTTI_BODY std::size_t longest(const KernelArgs& work) {
    if (work.stage_output) return work.staging_bytes / kSlots / 16 * 16;
    return work.chunk_bytes == 0 ? RootedPasses::kOnePass : work.chunk_bytes;
  }

  TUTTI_BODY BroadcastBlock(Team& team, const KernelArgs& work)
      : passes(work, 1, longest(work), false), team_(team), work_(work) {}

  TUTTI_BODY void push(std::size_t k, const Pointers<Team::kMaxRanks>& outputs) const {
    const bool keeps = work_.input != work_.output;
    TUTTI_NO_UNROLL
    for (int step = 0; step < passes.dealers; ++step) {
      const int next = work_.root + 1 + step, rank = next < work_.ranks ? next : next - work_.ranks;
      const Range share = passes.share_of(rank, k);
      const std::size_t shift = shift_of(rank, k);
      std::byte* const to = outputs.of(step);
      team_.template for_each_tile<T>(share, [&](auto access, TileAt tile) {
        const auto value = team_.template load<T>(work_.input, access, tile);
        team_.template store<T>(to, access, TileAt{tile.first + shift, tile.count}, value);
        if (keeps) team_.template store<T>(work_.output, access, tile, value);
      });
    }
  }

  TUTTI_BODY void pass_on(std::size_t k, const Pointers<Team::kMaxRanks>& outputs) const {
    const std::byte* const from = work_.stage_output ? work_.staging.at[work_.rank] : work_.output;
    const int root = (work_.root - work_.rank - 1 + work_.ranks) % work_.ranks;  // as a step
    const Range share = passes.share_of(work_.rank, k);
    const std::size_t shift = shift_of(work_.rank, k);
    team_.template for_each_tile<T>(share, [&](auto access, TileAt tile) {
      const TileAt at{tile.first + shift, tile.count};
      const auto value = team_.template load<T>(from, access, at);
      TUTTI_NO_UNROLL
      for (int step = 0; step + 1 < work_.ranks; ++step) {
        if (step != root) team_.template store<T>(outputs.of(step), access, at, value);
      }
    });
  }

  TUTTI_BODY void copy_out(std::size_t k) const {
    TUTTI_NO_UNROLL
    for (int r = 0; r < work_.ranks; ++r) {
      if (r == work_.root) continue;
      team_.template copy_out<T>(passes.share_of(r, k), std::size_t{0} - shift_of(r, k));
    }
  }

  const RootedPasses passes;

 private:
  // From a place in the message to the same in outputs, or in slots; sizes wrap.
  TUTTI_BODY std::size_t shift_of(int rank, std::size_t k) const {
    if (!work_.stage_output) return 0;
    return k % kSlots * longest(work_) + passes.slot_of(rank) - passes.share_of(rank, k).first;
  }

  Team& team_;
  const KernelArgs& work_;
};

template <class, class Team>
TUTTI_BODY Outcome BroadcastTwoShot::run(Team& team, const KernelArgs& work) {
  const BroadcastBlock<Team> block(team, work);
  const bool is_root = work.rank == work.root, copies = work.stage_output && !is_root;
  const std::size_t number = block.passes.number, late = work.ranks > 2 ? 2 : 1;
  team.arrive(Publish::kEarlierKernels);
  const auto buffers = team.buffers();
  if (team.wait() != Outcome::kDone) return Outcome::kFailed;

  TUTTI_NO_UNROLL
  for (std::size_t k = 0; k + 1 < number + late; ++k) {
    if (is_root && k < number) block.push(k, buffers.outputs);
    if (!is_root && late == 2 && k > 0) block.pass_on(k - 1, buffers.outputs);
    if (copies && k >= late) block.copy_out(k - late);
    if (team.barrier(Publish::kStores) != Outcome::kDone) return Outcome::kFailed;
  }
  if (copies) block.copy_out(number - 1);
  return team.finish();
}

}  // namespace tutti
