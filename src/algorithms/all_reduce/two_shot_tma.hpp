// all_reduce/two_shot_tma: as two_shot_staged, pass for pass, but bulk copies carry the data: few
// threads issue them, so that few blocks keep the links busy, and a matmul beside has the other
// multiprocessors.
//
//   barrier         every rank has begun, and is done with its staging of the operation before
//   for each pass k, and once more for the last sums
//     push k        my input of each other rank's share, the next rank's first, into my slot there
//     copy k - 2    sums from staging to output (only where peers cannot address that)
//     reduce k - 1  my share, from my input and the others' slots; bulk copies take it to all ranks
//     bulk_wait     all of these copies are complete
//     barrier k     every push k is there, and every sum k - 1
//   copy the last pass, bulk_wait
//
// Why that is right, two_shot_staged.hpp says, with these in addition:
//   - A bulk copy reads its source, and writes, at any time until bulk_wait(). So what the barrier
//     says of pushes, copies and sums holds because that comes before it.
//   - Block b has the same run of every slot, in shorter passes as far as they reach.
//   - In place: a block overwrites its part of the own share once it has added that up; what it
//     pushes meanwhile belongs to other shares.
//
// Cost: as two_shot_staged.
#pragma once

#include "algorithms/all_reduce/staged_passes.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct AllReduceTwoShotTma {
  using Kernel = BulkKernel;
  using Types = EveryReduction;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce/two_shot_tma",
      .family = Family::kTwoShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      // Of one pass, as measured on 2 H200s.
      .cost = {.steps = 9.4, .wire = two_shot_wire, .local = times<2>},
      .text = "as two_shot_staged, by bulk copies (TMA), which need few SMs",
      .peers_read_input = false,
      .peers_write_output = true,
      .pushes_through_staging = true,
      .only_where_measured = true,
      .least_compute = 90,
      .min_threads = 64,
      .shared_bytes = kBulkBytes,
      .takes = takes_everything,
      .geometry = bulk_geometry,
      .host = host,
      .cuda = cuda};
  // What is added up goes into shared memory. ptxas fences within the block besides, for bulk
  // copies.
  static constexpr KernelPromises kPromises{.loads = kMaxCudaRanks,
                                            .barriers = 2,
                                            .stack_bytes = 64,
                                            .block_fences = true,
                                            .bulk_loads = true,
                                            .bulk_stores = true};
  static constexpr Traffic kTraffic{.hops = "5, and 2 for each further pass",
                                    .wire = "2 (n-1)/n B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team>
class BulkBlock {
 public:
  using T = typename Reduction::Element;

  static constexpr int kRanks = Team::kMaxRanks;

  TUTTI_BODY BulkBlock(Team& team, const KernelArgs& work) : team_(team), work_(work) {}

  TUTTI_BODY void push(const StagedPass& pass) const {
    TUTTI_NO_UNROLL
    for (int step = 1; step < work_.ranks; ++step) {
      const int next = work_.rank + step;
      const int rank = next < work_.ranks ? next : next - work_.ranks;
      const Range share = pass.share_of(rank);
      const Range part = part_of(pass, share.count);
      team_.template bulk_copy<T>(staging_at(rank, pass.place(work_.rank) + part.first),
                                  input_at(share.first + part.first), part.count);
    }
  }

  TUTTI_BODY void reduce(const StagedPass& pass, const Pointers<kRanks>& outputs,
                         const Scalars<Reduction, kRanks>& scalars) const {
    const Range share = pass.share_of(work_.rank);
    const Range part = part_of(pass, share.count);
    Pointers<kRanks> from;
    TUTTI_UNROLL
    for (int r = 0; r < kRanks; ++r) {
      if (r >= work_.ranks) continue;
      from.at[r] = r == work_.rank ? const_cast<std::byte*>(input_at(share.first + part.first))
                                   : staging_at(work_.rank, pass.place(r) + part.first);
    }
    const std::size_t place =
        work_.stage_output ? pass.place(work_.ranks + work_.rank) : share.first;
    team_.template bulk_store_all<T>(
        outputs, Range{place + part.first, part.count}, [&](auto access, TileAt tile) {
          return reduce_tile<Reduction, true>(team_, from, access, tile, scalars);
        });
  }

  TUTTI_BODY void copy_out(const StagedPass& pass) const {
    if (!work_.stage_output) return;
    TUTTI_NO_UNROLL
    for (int r = 0; r < work_.ranks; ++r) {
      const Range share = pass.share_of(r);
      const Range part = part_of(pass, share.count);
      team_.template bulk_copy<T>(work_.output + (share.first + part.first) * sizeof(T),
                                  staging_at(work_.rank, pass.place(work_.ranks + r) + part.first),
                                  part.count);
    }
  }

  TUTTI_BODY Outcome settle() const { return team_.bulk_wait(); }

 private:
  TUTTI_BODY const std::byte* input_at(std::size_t first) const {
    return work_.input + first * sizeof(T);
  }
  TUTTI_BODY std::byte* staging_at(int rank, std::size_t first) const {
    return work_.staging.at[rank] + first * sizeof(T);
  }
  // This block's part of a slot, as far as a share of `count` elements fills it.
  TUTTI_BODY Range part_of(const StagedPass& pass, std::size_t count) const {
    const Range slot{0, pass.slot};
    return cut(shard(slot, team_.block(), work_.blocks, 16 / sizeof(T)), count);
  }

  Team& team_;
  const KernelArgs& work_;
};

template <class Reduction, class Team>
TUTTI_BODY Outcome AllReduceTwoShotTma::run(Team& team, const KernelArgs& work) {
  return run_staged_passes<Reduction>(team, work, BulkBlock<Reduction, Team>(team, work));
}

}  // namespace tutti
