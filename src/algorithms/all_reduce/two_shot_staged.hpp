// all_reduce/two_shot_staged: every rank pushes each rank its share, which reduces it and pushes
// the sum to everyone. Only stores cross the links.
//
//   barrier         every rank has begun, and is done with its staging of the operation before
//   for each pass k, and once more for the last sums
//     push k        my input of each other rank's share, the next rank's first, into my slot there
//     copy k - 2    sums from staging to output (only where peers cannot address that)
//     reduce k - 1  my share, from my input and the others' slots; store it to all ranks
//     barrier k     every push k is there, and every sum k - 1
//   copy the last pass
//
// Passes take turns with two halves of staging. Why that is right, for block b of every rank, which
// has the same tiles of every slot and share, and meets block b of the others alone:
//   - The first barrier: nobody pushes to a rank that is still in the operation before, which may
//     have used staging otherwise, nor to one that runs another operation or has given up.
//   - A slot is filled by push k behind barrier k - 1, to which its owner came after reduce k - 2,
//     the last one to load from it. Likewise where sums are staged: those of pass k - 1 are stored
//     behind barrier k - 1, to which their receiver came after it had copied pass k - 3.
//   - In place: sums k - 1 are stored to an output behind barrier k - 1, to which its owner came
//     after push k - 1, which loaded all of that pass there but its own share. An element of that
//     is loaded by the one thread that then overwrites it.
//   - A tile has the same place in a slot in every pass, be that shorter than others: a place stays
//     with one block, since the blocks of a rank do not wait for each other.
//
// Cost: 5 hops (three flags, two stores), and 2 for each further pass; 2(n-1)/n x bytes over each
// link. No peer touches the input: any buffer will do.
#pragma once

#include "algorithms/all_reduce/staged_passes.hpp"
#include "algorithms/costs.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/geometry.hpp"
#include "algorithms/takes.hpp"

namespace tutti {

struct AllReduceTwoShotStaged {
  using Kernel = PeerKernel;
  using Types = EveryReduction;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "all_reduce/two_shot_staged",
      .family = Family::kTwoShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .order = Order::kRankOrder,
      // Of one pass, as measured on 2 H200s.
      .cost = {.steps = 7.8, .wire = two_shot_wire, .local = times<2>},
      .text = "every rank pushes each rank its share; that rank pushes the sum to all; in passes",
      .peers_read_input = false,
      .peers_write_output = true,
      .pushes_through_staging = true,
      .only_where_measured = true,
      .compared_on_host = 2,
      .takes = takes_everything,
      .geometry = two_shot_geometry,
      .host = host,
      .cuda = cuda};
  // Pushing, where every share is whole, and reducing. 8-bit floats put aside what counts the
  // passes.
  static constexpr KernelPromises kPromises{.loads = kMaxCudaRanks,
                                            .stores = kMaxCudaRanks,
                                            .barriers = 2,
                                            .loops = 2,
                                            .stack_bytes = 96,
                                            .local = 3};  // of fp8
  static constexpr Traffic kTraffic{.hops = "5, and 2 for each further pass",
                                    .wire = "2 (n-1)/n B"};

  template <class Reduction, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

template <class Reduction, class Team>
class StagedBlock {
 public:
  using T = typename Reduction::Element;

  static constexpr int kRanks = Team::kMaxRanks;

  TUTTI_BODY StagedBlock(Team& team, const KernelArgs& work) : team_(team), work_(work) {}

  // `Pass`: a StagedPass, or what says as much of other shares.
  template <class Pass>
  TUTTI_BODY void push(const Pass& pass) const {
    if constexpr (Team::kBlockIsThread) {
      for (int step = 0; step + 1 < work_.ranks; ++step) {
        const int rank = rank_after(step);
        const Range share = pass.share_of(rank);
        team_.template copy_between<T>({0, share.count}, input_at(share.first),
                                       slot_at(rank, pass));
      }
    } else {
      team_.template for_each_tile<T>(
          Range{0, pass.share}, [&](auto access, TileAt tile) { push_column(pass, access, tile); });
      if (pass.whole < work_.ranks && pass.whole != work_.rank) push_cut(pass.whole, pass);
    }
  }

  TUTTI_BODY void reduce(const StagedPass& pass, const Pointers<kRanks>& outputs,
                         const Scalars<Reduction, kRanks>& scalars) const {
    const Range share = pass.share_of(work_.rank);
    Pointers<kRanks> from;
    TUTTI_UNROLL
    for (int r = 0; r < kRanks; ++r) {
      if (r >= work_.ranks) continue;
      from.at[r] = r == work_.rank ? const_cast<std::byte*>(input_at(share.first))
                                   : work_.staging.at[work_.rank] + pass.place(r) * sizeof(T);
    }
    const std::size_t place =
        work_.stage_output ? pass.place(work_.ranks + work_.rank) : share.first;
    team_.template for_each_tile<T>(Range{0, share.count}, [&](auto access, TileAt tile) {
      const auto value = reduce_tile<Reduction, true>(team_, from, access, tile, scalars);
      const TileAt at{place + tile.first, tile.count};
      if constexpr (Team::kBlockIsThread) {
        const TileAt own{share.first + tile.first, tile.count};
        team_.template store_own_apart<T>(outputs, access, at, own, value);
      } else {
        team_.template store_all<T>(outputs, access, at, value);
      }
    });
  }

  TUTTI_BODY void copy_out(const StagedPass& pass) const {
    if (!work_.stage_output) return;
    TUTTI_NO_UNROLL
    for (int r = 0; r < work_.ranks; ++r) {
      const Range share = pass.share_of(r);
      if (share.count == 0) break;
      if constexpr (Team::kBlockIsThread) {
        if (r == work_.rank) continue;  // reduce() has stored it there
      }
      // Where staging would begin in the message; before it, perhaps: sizes wrap.
      team_.template copy_out<T>(share, share.first - pass.place(work_.ranks + r));
    }
  }

  TUTTI_BODY Outcome settle() const { return Outcome::kDone; }

 private:
  TUTTI_BODY int rank_after(int step) const {
    const int rank = work_.rank + 1 + step;
    return rank < work_.ranks ? rank : rank - work_.ranks;
  }
  TUTTI_BODY const std::byte* input_at(std::size_t first) const {
    return work_.input + first * sizeof(T);
  }
  // Where `pass` has this rank's slot at another one.
  template <class Pass>
  TUTTI_BODY std::byte* slot_at(int rank, const Pass& pass) const {
    return work_.staging.at[rank] + pass.place(work_.rank) * sizeof(T);
  }

  // A tile of each whole share, to its rank.
  template <class Pass, class Access>
  TUTTI_BODY void push_column(const Pass& pass, Access access, TileAt tile) const {
    const auto goes = [&](int step) {
      return step + 1 < work_.ranks && rank_after(step) < pass.whole;
    };
    const auto part_of = [&](int step) {
      return team_.template load<T>(input_at(pass.first_of(rank_after(step))), access, tile);
    };
    const auto send = [&](int step, const auto& part) {
      team_.template store<T>(slot_at(rank_after(step), pass), access, tile, part);
    };
    if constexpr (Access::kLoadsAhead) {
      using Part = Tile<T, Team::template tile_elements<T>()>;
      using Words = Tile<std::uint32_t, sizeof(Part) / 4>;  // which stay whole registers
      Words part[kRanks];
      TUTTI_UNROLL
      for (int step = 0; step < kRanks; ++step) {
        part[step] = {};  // see reduce_ahead()
        if (goes(step)) part[step] = __builtin_bit_cast(Words, part_of(step));
      }
      team_.end_of_loads();
      TUTTI_UNROLL
      for (int step = 0; step < kRanks; ++step) {
        if (goes(step)) send(step, __builtin_bit_cast(Part, part[step]));
      }
    } else {
      TUTTI_NO_UNROLL
      for (int step = 0; step < work_.ranks; ++step) {
        if (goes(step)) send(step, part_of(step));
      }
    }
  }

  template <class Pass>
  TUTTI_BODY void push_cut(int rank, const Pass& pass) const {
    const Range share = pass.share_of(rank);
    team_.template for_each_tile<T>(Range{0, share.count}, [&](auto access, TileAt tile) {
      const auto part = team_.template load<T>(input_at(share.first), access, tile);
      team_.template store<T>(slot_at(rank, pass), access, tile, part);
    });
  }

  Team& team_;
  const KernelArgs& work_;
};

template <class Reduction, class Team>
TUTTI_BODY Outcome AllReduceTwoShotStaged::run(Team& team, const KernelArgs& work) {
  return run_staged_passes<Reduction>(team, work, StagedBlock<Reduction, Team>(team, work));
}

}  // namespace tutti
