// all_to_all_v/one_shot_push: every rank sends each rank its piece, and keeps what it is sent.
// Where it has the same for everybody, that is all_gather_v/one_shot_push. All counts are the
// host's.
//
//   phase 1  push tile k of what each rank gets into my slot there, store what is my own to output;
//            one thread pushes how much there is for each, behind the last tile
//   phase 2  poll tile k of every rank that has one for me, store it; one thread polls how much
//            there was, and compares
//
// Cost: 1 hop (a packet), twice what a rank has for others over its links: every pattern has to
// arrive as it is, so bits travel beside marks. Nobody touches another rank's buffers, so any will
// do; in place is safe where the same goes to everybody.
#pragma once

#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/uneven.hpp"
#include "algorithms/uneven_rows.hpp"
#include "device/counts.hpp"
#include "device/packets.hpp"

namespace tutti {

struct AllToAllVOneShotPush {
  using Kernel = PacketKernel;
  using Types = MovedBytes;
  using Beside = PieceCounts;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "all_to_all_v/one_shot_push",
      .collective = Collective::kAllToAllV,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 2.6,
               .host_steps = 5.5,
               .wire = pieces_wire,
               .local = packets_to_each_local},
      .text = "every rank sends each rank its block, in words that are their own flags",
      .peers_read_input = false,
      .starts_early = true,
      .counts_on_host = true,
      .packets = packets_of_counted_pieces,
      .takes = moves,
      .geometry = shared_packets_geometry,
      .host = host,
      .cuda = cuda};
  static constexpr KernelPromises kPromises = kPollsTogether;
  static constexpr Traffic kTraffic{.hops = "1", .wire = "2 (n-1)/n B"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work, const PieceCounts& counts);
};

// Tiles of one slot.
template <class Team>
using Tiles = Shares<Team::template tile_elements<std::uint8_t>()>;

// So many are the tiles of the longest piece.
template <class Team>
TUTTI_BODY Slice slices_of(const Range (&pieces)[kMaxRanks], int ranks) {
  Slice most = 0;
  TUTTI_NO_UNROLL
  for (int r = 0; r < ranks; ++r) {
    const Slice slices = Tiles<Team>(pieces[r].count, 1).slices;
    most = slices > most ? slices : most;
  }
  return most;
}

template <class Team>
TUTTI_BODY void push_counts(Team& team, const KernelArgs& work, const PieceCounts& counts,
                            Slice at) {
  typename Team::Column column;
  TUTTI_UNROLL
  for (int step = 0; step < Team::kMaxRanks; ++step) {
    if (step >= team.others()) break;
    column.at[step] = Team::word_of(counts.sent[rank_behind(work, step)].count);
  }
  team.template push_column<std::uint8_t>(
      {0, at}, [](int) { return 8; }, column);
}

template <class Team>
TUTTI_BODY Outcome check_counts(Team& team, const KernelArgs& work, const PieceCounts& counts,
                                Slice at) {
  typename Team::Column column;
  const auto whole = [](int) { return 8; };
  if (team.template poll<std::uint8_t>({0, at}, whole, column) != Outcome::kDone) {
    return Outcome::kFailed;
  }
  TUTTI_UNROLL
  for (int r = 0; r < Team::kMaxRanks; ++r) {
    if (r >= team.ranks() || r == work.rank) continue;
    const std::uint64_t sent = Team::number_of(column.at[r]) >> counts.bits;
    const std::uint64_t taken = counts.taken[r].count >> counts.bits;
    if (sent != taken) return team.refuse(r, sent, {false, FailureReason::kOtherCount, taken});
  }
  return Outcome::kDone;
}

template <class, class Team>
TUTTI_BODY Outcome AllToAllVOneShotPush::run(Team& team, const KernelArgs& work,
                                             const PieceCounts& counts) {
  using T = std::uint8_t;
  using Column = typename Team::Column;
  const auto tile_of = [](const Range& piece, Slice k) {
    return Tiles<Team>(piece.count, 1).tile(0, k);
  };
  const Slice behind = Tiles<Team>(piece_of(work), 1).slices;  // where counts are told
  const bool tells = !counts.agreed && team.is_last_slice();
  const Range own = counts.sent[work.rank];
  std::byte* const kept = work.output + counts.taken[work.rank].first;

  team.launch_wait();
  team.ask_launch();
  if (team.open_packets() != Outcome::kDone) return Outcome::kFailed;
  team.for_each_slice(slices_of<Team>(counts.sent, work.ranks), [&](Slice k) {
    Column column;
    TUTTI_UNROLL
    for (int step = 0; step < Team::kMaxRanks; ++step) {
      if (step >= team.others()) break;
      const Range& piece = counts.sent[rank_behind(work, step)];
      column.at[step] = team.template load_from<T>(work.input + piece.first, tile_of(piece, k));
    }
    const auto count = [&](int rank) { return tile_of(counts.sent[rank], k).count; };
    team.template push_some<T>({0, k}, count, column);
    const TileAt tile = tile_of(own, k);
    const auto words = team.template load_from<T>(work.input + own.first, tile);
    team.template store_to<T>(kept, tile, words);
    return Outcome::kDone;
  });
  if (tells) push_counts(team, work, counts, behind);
  team.announce();
  team.launch_trigger();

  if (tells && check_counts(team, work, counts, behind) != Outcome::kDone) return Outcome::kFailed;
  const Slice slices = slices_of<Team>(counts.taken, work.ranks);
  const Outcome outcome = team.for_each_slice(slices, [&](Slice k) {
    Column column;
    const auto count = [&](int rank) { return tile_of(counts.taken[rank], k).count; };
    if (team.template poll_some<T>({0, k}, count, column) != Outcome::kDone) {
      return Outcome::kFailed;
    }
    TUTTI_UNROLL
    for (int r = 0; r < Team::kMaxRanks; ++r) {
      if (r >= team.ranks() || r == work.rank) continue;
      const Range& piece = counts.taken[r];
      team.template store_to<T>(work.output + piece.first, tile_of(piece, k), column.at[r]);
    }
    return Outcome::kDone;
  });
  if (outcome != Outcome::kDone) return Outcome::kFailed;
  return team.close_packets();
}

}  // namespace tutti
