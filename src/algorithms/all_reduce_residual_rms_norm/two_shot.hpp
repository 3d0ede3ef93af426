// all_reduce_residual_rms_norm/two_shot: each rank sums up its tokens and writes residual_output to
// everyone; every rank normalises all of them.
//
//   phase 1  stage in (only for buffers that peers cannot address)
//   phase 2  barrier: every input is there
//   phase 3  load each tile of my tokens from all ranks, reduce, add the residual, store to the
//            residual_output of all ranks
//   phase 4  barrier: every token is written, and nobody reads my input any more
//   phase 5  stage out (as phase 1); normalise each token, store to own output
//
// Cost: 5 hops, 2(n-1)/n x bytes over each link. What is normalised on every rank need not be sent:
// own memory has several times the bandwidth of the links. A token belongs to the same block in all
// phases and on all ranks, so in place is safe: the block of a token's owner reads its input before
// phase 4, the same block of this rank overwrites it after; its residual is read by its owner
// alone, in the thread that then overwrites it.
#pragma once

#include "algorithms/all_reduce_residual_rms_norm/token.hpp"

namespace tutti {

// The tokens of one pass, and how they are shared out to ranks.
struct TokenShares {
  Slice first, count;  // of the pass
  Slice share;         // of each rank but the last ones, also in a last, shorter pass

  TUTTI_BODY Slice first_of(int rank) const {
    const Slice before = static_cast<Slice>(rank) * share;
    return before < count ? before : count;
  }
  // f(token) for those of rank `owner` that are this block's, until one fails.
  template <class Team, class F>
  TUTTI_BODY Outcome for_each(const Team& team, int owner, F&& f) const {
    const Slice begin = first_of(owner), end = first_of(owner + 1);
    return team.for_each_token(end - begin, [&](Slice i) { return f(first + begin + i); });
  }
};

// Tokens per pass: all of them, or as many as fit into staging, spread evenly.
TUTTI_BODY Slice tokens_per_pass(const Work& work, Slice tokens, std::size_t token_bytes) {
  const std::size_t fits = work.staging_bytes / token_bytes;
  if (!work.stage_input || fits >= tokens) return tokens;
  const auto passes = static_cast<Slice>((tokens + fits - 1) / fits);
  return (tokens + passes - 1) / passes;
}

template <class Reduction, class Team>
TUTTI_BODY Outcome all_reduce_residual_rms_norm_two_shot(Team& team, const Work& work) {
  using T = typename Reduction::Element;
  using Words = typename Team::Words;
  const Tokens<Team::template tile_elements<T>()> tokens(work);
  const Slice pass = tokens_per_pass(work, tokens.count, tokens.hidden * sizeof(T));
  const Slice share = (pass + static_cast<Slice>(work.ranks) - 1) / static_cast<Slice>(work.ranks);
  std::byte* const staging = work.staging.at[work.rank];

  for (Slice done = 0; done < tokens.count || done == 0; done += pass) {
    const Slice left = tokens.count - done;
    const TokenShares shares{done, left < pass ? left : pass, share};
    const std::size_t origin =
        work.stage_input ? static_cast<std::size_t>(done) * tokens.hidden : 0;
    const auto moved = [&](TileAt at) { return TileAt{at.first - origin, at.count}; };
    const auto for_each_tile = [&](int owner, auto&& f) {
      (void)shares.for_each(team, owner, [&](Slice token) {
        team.for_each_of_token(tokens.tiles, [&](Slice k) { f(tokens.tile(token, k)); });
        return Outcome::kDone;
      });
    };

    for (int r = 0; work.stage_input && r < work.ranks; ++r) {
      for_each_tile(r, [&](TileAt at) {
        team.template store_to<T>(staging, moved(at), team.template load_from<T>(work.input, at));
      });
    }

    team.arrive(first_publish(work));
    const auto buffers = team.buffers();
    if (team.wait() != Outcome::kDone) return Outcome::kFailed;

    const Scalars<Reduction, Team::kMaxRanks> scalars(team, work);
    team.with_access([&](auto access) {
      for_each_tile(work.rank, [&](TileAt at) {
        const Words residual = team.template load_from<T>(work.norm.residual, at);
        const auto sum = reduce_tile<Reduction>(team, buffers.inputs, access, moved(at), scalars);
        const Words added = plus_residual<T, Team>(Team::words_of(sum), residual);
        const auto value = Team::template tile_of<T>(added);
        team.template store_all<T>(buffers.outputs, access, moved(at), value);
      });
    });

    if (team.barrier(Publish::kStores) != Outcome::kDone) return Outcome::kFailed;

    (void)team.template with_token_access<T>(work, [&](auto access) {
      const TokenWork<T, Team, decltype(access)> all(team, work, access);
      const auto added = [&](Slice, TileAt at, Words& words) {
        words = work.stage_output ? all.load(staging, moved(at)) : all.load(work.output, at);
        if (work.stage_output) all.store(work.output, at, words);
        return Outcome::kDone;
      };
      all.hold_weights();
      for (int r = 0; r < work.ranks; ++r) {
        (void)shares.for_each(team, r, [&](Slice token) { return all.normalise(token, added); });
      }
      return Outcome::kDone;
    });
    if (pass == 0) break;
  }
  return team.finish();
}

}  // namespace tutti
