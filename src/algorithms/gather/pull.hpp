// gather/pull: the root loads everybody's input.
//
//   phase 1  stage in (only for inputs that peers cannot address)
//   phase 2  barrier: every input is there
//   phase 3  root: load tile k of every rank's input, store each at that rank's place
//   phase 4  barrier: nobody reads my input any more
//
// Cost: 4 hops (two flags, a load's way there and back), (n-1)/n x bytes over the root's links.
// Nobody touches the root's output, so any will do.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/pieces.hpp"

namespace tutti {

struct GatherPull {
  using Kernel = PeerKernel;
  using Types = MovedBytes;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{.id = "gather/pull",
                                        .collective = Collective::kGather,
                                        .family = Family::kOneShot,
                                        .needs = kNeedsPeerAccess,
                                        .max_ranks_host = kMaxRanks,
                                        .max_ranks_cuda = kMaxCudaRanks,
                                        .cost = moving_cost(),
                                        .text = "the root reads every rank's input",
                                        .takes = moves,
                                        .geometry = push_pieces_geometry,
                                        .host = host,
                                        .cuda = cuda};
  static constexpr KernelPromises kPromises{
      .loads = kMaxCudaRanks, .stores = kMaxCudaRanks, .barriers = 2};
  static constexpr Traffic kTraffic{.hops = "4", .wire = "(n-1)/n B, to the root"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work);
};

// `tile` of each rank's `from`, to the place of that rank's piece in the output.
template <class Team, class Access>
TUTTI_BODY void gather_tile(Team& team, const KernelArgs& work,
                            const Pointers<Team::kMaxRanks>& from, Access access, TileAt tile) {
  using T = std::uint8_t;
  const auto load = [&](int rank) { return team.template load<T>(from.of(rank), access, tile); };
  const auto store = [&](int rank, const auto& value) {
    const std::size_t place = static_cast<std::size_t>(rank) * piece_of(work);
    team.template store<T>(work.output + place, access, tile, value);
  };
  if constexpr (Access::kLoadsAhead) {
    using Part = Tile<T, Team::template tile_elements<T>()>;
    using Words = Tile<std::uint32_t, sizeof(Part) / 4>;  // which stay whole registers
    Words part[Team::kMaxRanks];
    TUTTI_UNROLL
    for (int r = 0; r < Team::kMaxRanks; ++r) {
      part[r] = {};
      if (r < work.ranks) part[r] = __builtin_bit_cast(Words, load(r));
    }
    team.end_of_loads();
    TUTTI_UNROLL
    for (int r = 0; r < Team::kMaxRanks; ++r) {
      if (r < work.ranks) store(r, __builtin_bit_cast(Part, part[r]));
    }
  } else {
    TUTTI_NO_UNROLL
    for (int r = 0; r < work.ranks; ++r) store(r, load(r));
  }
}

// Where each rank's piece would begin, of which others show what comes from `origin` on. The own
// one is not shown.
template <int kRanks>
TUTTI_BODY Pointers<kRanks> pieces_from(const KernelArgs& work, const Pointers<kRanks>& inputs,
                                        std::size_t origin) {
  Pointers<kRanks> from;
  TUTTI_UNROLL
  for (int r = 0; r < kRanks; ++r) {
    if (r >= work.ranks) continue;
    const bool own = r == work.rank;
    from.at[r] = own ? const_cast<std::byte*>(work.input) : inputs.at[r] - origin;
  }
  return from;
}

template <class, class Team>
TUTTI_BODY Outcome GatherPull::run(Team& team, const KernelArgs& work) {
  using T = std::uint8_t;
  const std::size_t piece = piece_of(work);
  const std::size_t slot = work.stage_input ? slot_of(work, 1, 1) : piece;

  for (std::size_t done = 0; done < piece || done == 0; done += slot) {
    const Range part = cut(Range{done, slot}, piece);
    const std::size_t origin = work.stage_input ? done : 0;  // of inputs, or of staging
    const bool shows = work.stage_input && work.rank != work.root;
    if (shows) team.template copy_in<T>(part, origin);

    team.arrive(first_publish(work));
    const auto buffers = team.buffers(piece);
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;

    if (work.rank == work.root) {
      const auto from = pieces_from(work, buffers.inputs, origin);
      team.template for_each_tile<T>(
          part, [&](auto access, TileAt tile) { gather_tile(team, work, from, access, tile); });
    }

    if (team.barrier(Publish::kLoads) != Outcome::kDone) return Outcome::kFailed;
    if (slot == 0) break;
  }
  return team.finish();
}

}  // namespace tutti
