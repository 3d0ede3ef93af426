// all_to_all_v/push: every rank stores what it has for each rank into that one's output. Where it
// has the same for everybody, that is all_gather_v/push.
//
//   phase 1  publish what I have for each rank
//   phase 2  barrier: every output may be written, staging is free, all counts are there
//   phase 3  learn who has how much for whom: where my pieces go follows from that
//   phase 4  store each rank its piece: short ones the next rank's first, which is far; of long
//            ones each block another rank's, so that links and own memory are busy at once
//   phase 5  barrier: every piece is written
//   phase 6  stage out (only for outputs that peers cannot address)
//
// Where all ranks were told all counts, phases 1 and 3 touch no other rank.
//
// Cost: 5 hops (two flags, counts' way there and back, a store), what a rank has for others over
// its links. Nobody touches another rank's input. In place is safe where the same goes to
// everybody: my place in my output is written by the threads that have read it, with what they
// read.
#pragma once

#include "algorithms/bodies.hpp"
#include "algorithms/uneven.hpp"

namespace tutti {

template <class Team>
TUTTI_BODY Outcome all_to_all_v_push(Team& team, const KernelArgs& work,
                                     const PieceCounts& counts) {
  using T = std::uint8_t;
  const std::size_t slot = work.stage_output ? uneven_slot(work, 1) : piece_of(work);
  const std::size_t mine = static_cast<std::size_t>(work.rank) * slot;
  constexpr std::size_t kLong = 1024 * 1024;
  const int begin = piece_of(work) < kLong ? 0 : team.block() % work.ranks;
  std::size_t longest = 0;

  Exchange<Team> exchange(team, work, counts);
  exchange.publish();
  for (std::size_t done = 0; done < longest || done == 0; done += slot) {
    team.arrive(done == 0 ? exchange.first_publish() : Publish::kLoads);
    const auto buffers = team.buffers();
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;
    if (done == 0) {
      if (exchange.learn() != Outcome::kDone) return Outcome::kFailed;
      longest = exchange.longest();
    }

    TUTTI_NO_UNROLL
    for (int step = 0; step < work.ranks; ++step) {
      const int turn = begin + step < work.ranks ? begin + step : begin + step - work.ranks;
      const int rank = rank_behind(work, turn);
      const Range part = cut({done, slot}, exchange.count(work.rank, rank));
      const std::byte* const from = work.input + exchange.first_for(rank);
      // Slots start at each pass anew.
      std::byte* const to = buffers.outputs.of(turn) +
                            (work.stage_output ? mine - done : exchange.place(work.rank, rank));
      team.template copy_between<T>(part, from, to);
    }

    if (team.barrier(Publish::kStores) != Outcome::kDone) return Outcome::kFailed;

    for (int r = 0; work.stage_output && r < work.ranks; ++r) {
      const Range part = cut({done, slot}, exchange.count(r, work.rank));
      const std::size_t to = exchange.place(r, work.rank) + done;
      team.template copy_out<T>(Range{to, part.count}, to - static_cast<std::size_t>(r) * slot);
    }
    if (slot == 0) break;
  }
  // One tile: by one thread.
  team.template for_each_tile<T>(Range{0, 1}, [&](auto, TileAt) { exchange.tell_found(); });
  return team.finish();
}

template <class Team>
BodyOf<Team> host_all_to_all_v_push(DataType, OpKind) {
  return [](Team& team, const KernelArgs& work) {
    return all_to_all_v_push(team, work, *work.counts);
  };
}

}  // namespace tutti
