// all_to_all_v/push: every rank stores what it has for each rank into that one's output. Where it
// has the same for everybody, that is all_gather_v/push.
//
//   phase 1  publish what I have for each rank
//   phase 2  barrier: every output may be written, staging is free, all counts are there
//   phase 3  learn who has how much for whom: where my pieces go follows from that
//   phase 4  store each rank its piece. Blocks are dealt bytes, not pieces, so that all blocks,
//            and all links of this rank, are done at the same time (algorithms/dealing.hpp)
//   phase 5  barrier: every piece is written
//   phase 6  stage out (only for outputs that peers cannot address)
//
// Where all ranks were told all counts, phases 1 and 3 touch no other rank.
//
// Cost: 5 hops (two flags, counts' way there and back, a store), what a rank has for others over
// its links. Nobody touches another rank's input. In place is safe where the same goes to
// everybody: nobody writes my place in my output, which is my input.
#pragma once

#include "algorithms/dealing.hpp"
#include "algorithms/descriptor.hpp"
#include "algorithms/moving.hpp"
#include "algorithms/uneven.hpp"
#include "algorithms/uneven_rows.hpp"
#include "device/counts.hpp"

namespace tutti {

struct AllToAllVPush {
  using Kernel = PeerKernel;
  using Types = MovedBytes;
  using Beside = PieceCounts;
  static HostBody host(DataType dtype, OpKind op);
  static CudaKernel cuda(DataType dtype, OpKind op, int ranks);

  static constexpr Algorithm kAlgorithm{
      .id = "all_to_all_v/push",
      .collective = Collective::kAllToAllV,
      .family = Family::kOneShot,
      .needs = kNeedsPeerAccess,
      .max_ranks_host = kMaxRanks,
      .max_ranks_cuda = kMaxCudaRanks,
      .cost = {.steps = 7, .host_steps = 3, .wire = pieces_wire, .local = own_piece_local},
      .text = "ranks exchange counts, then store each rank's block into that rank's output",
      .peers_read_input = false,
      .peers_write_output = true,
      .publishes_counts = true,
      .takes = moves,
      .geometry = counted_geometry,
      .host = host,
      .cuda = cuda};
  // Of pieces of any lengths: one rank's piece after the other, as many vectors as a thread has
  // under way.
  static constexpr KernelPromises kPromises{.loads = 8, .stores = 8, .barriers = 2};
  static constexpr Traffic kTraffic{.hops = "5", .wire = "(n-1)/n B"};

  template <class, class Team>
  static TUTTI_BODY Outcome run(Team& team, const KernelArgs& work, const PieceCounts& counts);
};

// The step of rank_behind() that a block begins with. Short pieces go to the next rank first, since
// remote stores take longest. With long pieces half of the blocks copy the own piece first and half
// of them last, so that links are busy all the time; staged, blocks begin with different ranks.
TUTTI_BODY int first_step(const KernelArgs& work, int block) {
  constexpr std::size_t kLong = 1024 * 1024;
  if (piece_of(work) < kLong) return 0;
  if (work.stage_output) return block % work.ranks;
  return block % 2 == 0 ? 0 : work.ranks - 1;
}

// Copies one block's share of a pass, which begins at byte `done` of each run.
template <class Team>
class DealtPush {
 public:
  using T = std::uint8_t;

  TUTTI_BODY DealtPush(Team& team, const KernelArgs& work, const Exchange<Team>& exchange)
      : dealing_(work, team.block()), team_(team), work_(work), exchange_(exchange) {}

  TUTTI_BODY const Dealing& dealing() const { return dealing_; }

  TUTTI_BODY void push(const Pointers<Team::kMaxRanks>& outputs, std::size_t done) const {
    const int first = first_step(work_, team_.block());
    BlockRun run_of_all = dealing_.run_of_pieces(units_for_others());
    TUTTI_NO_UNROLL
    for (int turn = 0; turn < work_.ranks; ++turn) {
      const int step = first + turn < work_.ranks ? first + turn : first + turn - work_.ranks;
      const int rank = rank_behind(work_, step);
      const bool is_own = rank == work_.rank, in_slot = work_.stage_output && !is_own;
      const std::size_t bytes = exchange_.count(work_.rank, rank);
      const Range run =
          is_own || in_slot ? dealing_.run_of(bytes, work_.rank, rank) : run_of_all.next(bytes);
      const Range part = dealing_.in_pass(run, done);
      if (part.count == 0) continue;
      const std::byte* const from = work_.input + exchange_.first_for(rank);
      const std::size_t at =
          in_slot ? dealing_.room_for(work_.rank) - part.first : exchange_.place(work_.rank, rank);
      std::byte* const to = (is_own ? work_.output : outputs.of(step)) + at;
      if (from != to) team_.template copy_alone<T>(part, from, to);  // else in place
    }
  }

  // From staging to the output: what the same block of every other rank has pushed.
  TUTTI_BODY void take(std::size_t done) const {
    TUTTI_NO_UNROLL
    for (int r = 0; r < work_.ranks; ++r) {
      if (r == work_.rank) continue;
      const Range run = dealing_.run_of(exchange_.count(r, work_.rank), r, work_.rank);
      const Range part = dealing_.in_pass(run, done);
      const std::byte* const from = work_.staging.at[work_.rank] + dealing_.room_for(r);
      std::byte* const to = work_.output + exchange_.place(r, work_.rank);
      team_.template copy_alone<T>(part, from - part.first, to);
    }
  }

 private:
  TUTTI_BODY Units units_for_others() const {
    Units units = 0;
    TUTTI_NO_UNROLL
    for (int r = 0; r < work_.ranks; ++r) {
      if (r != work_.rank) units += dealing_.units_of(exchange_.count(work_.rank, r));
    }
    return units;
  }

  Dealing dealing_;
  Team& team_;
  const KernelArgs& work_;
  const Exchange<Team>& exchange_;
};

template <class, class Team>
TUTTI_BODY Outcome AllToAllVPush::run(Team& team, const KernelArgs& work,
                                      const PieceCounts& counts) {
  Exchange<Team> exchange(team, work, counts);
  const DealtPush<Team> dealt(team, work, exchange);
  std::size_t done = 0, longest = 0;

  exchange.publish();
  do {
    team.arrive(done == 0 ? exchange.first_publish() : Publish::kLoads);
    const auto buffers = team.buffers();
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;
    if (done == 0) {
      if (exchange.learn() != Outcome::kDone) return Outcome::kFailed;
      if (work.stage_output) longest = dealt.dealing().longest_run(exchange.longest());
    }
    dealt.push(buffers.outputs, done);
    if (team.barrier(Publish::kStores) != Outcome::kDone) return Outcome::kFailed;
    if (work.stage_output) dealt.take(done);
    done += dealt.dealing().room();
  } while (done < longest);
  // One tile: by one thread.
  team.template for_each_tile<std::uint8_t>(Range{0, 1},
                                            [&](auto, TileAt) { exchange.tell_found(); });
  return team.finish();
}

}  // namespace tutti
