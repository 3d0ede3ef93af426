// all_reduce_residual_rms_norm/one_shot_push: every rank sends its input to everybody, and reduces
// and normalises what it is sent. A block has whole tokens.
//
//   phase 1  push each tile of my tokens into my slot at every other rank
//   phase 2  for each token: poll each tile of every other rank, reduce, add the residual, store
//            residual_output; sum up the squares over the block; normalise, store to output
//
// Cost: 1 hop (a packet) and a block's sum, (n-1) x bytes over each rank's links. Nobody touches
// another rank's buffers, so any will do. In place is safe: a tile of an output is stored by the
// thread that has pushed the same tile of the input, or loaded that of the residual.
#pragma once

#include "algorithms/all_reduce_residual_rms_norm/token.hpp"

namespace tutti {

template <class Reduction, class Team>
TUTTI_BODY Outcome all_reduce_residual_rms_norm_one_shot_push(Team& team, const Work& work) {
  using T = typename Reduction::Element;
  using Words = typename Team::Words;
  const Tokens<Team::template tile_elements<T>()> tokens(work);
  const Slice first = team.first_token(), first_tile = team.first_of_token();

  team.launch_wait();
  team.ask_launch();
  const Words ahead = team.template load_tile<T>(tokens.tile(first, first_tile));
  if (team.open_packets() != Outcome::kDone) return Outcome::kFailed;
  const auto push = [&](Slice token, Slice k) {
    const TileAt at = tokens.tile(token, k);
    const bool here = token == first && k == first_tile;
    const Words words = here ? ahead : team.template load_tile<T>(at);
    team.template push_all<T>({0, token * tokens.tiles + k}, at.count, words);
  };
  (void)team.for_each_token(tokens.count, [&](Slice token) {
    team.for_each_of_token(tokens.tiles, [&](Slice k) { push(token, k); });
    return Outcome::kDone;
  });
  team.announce();
  team.launch_trigger();

  const Outcome outcome = team.for_each_token(tokens.count, [&](Slice token) {
    return normalise_token<T>(team, work, token, [&](Slice k, TileAt at, Words& added) {
      const Words residual = team.template load_from<T>(work.norm.residual, at);
      const Words own = team.template load_tile<T>(at);
      typename Team::Column column;
      const auto count = [&](int) { return at.count; };
      const PacketAt place{0, token * tokens.tiles + k};
      if (team.template poll<T>(place, count, column) != Outcome::kDone) return Outcome::kFailed;
      team.place_own(column, own);
      const Words sum = reduce_column<Reduction>(team, column, at.count, 1.0);
      added = plus_residual<T, Team>(sum, residual);
      team.template store_tile<T>(at, added);
      return Outcome::kDone;
    });
  });
  if (outcome != Outcome::kDone) return Outcome::kFailed;
  return team.close_packets();
}

}  // namespace tutti
