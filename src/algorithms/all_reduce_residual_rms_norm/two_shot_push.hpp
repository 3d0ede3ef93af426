// all_reduce_residual_rms_norm/two_shot_push: every rank sends each rank its tokens, which adds
// them up, with the residual, and sends the sums to everybody; every rank normalises all of them.
//
//   phase 1  push each tile of the tokens of rank r into my slot at rank r
//   phase 2  poll each tile of my tokens from every other rank, reduce, add the residual, push the
//            result to them, store it to own residual_output
//   phase 3  poll each tile of every other rank's tokens from their owner, store residual_output;
//            sum up the squares of a token of each rank over the block; normalise, store to output
//
// Cost: 2 hops (two packets) and a block's sum, 2(n-1)/n x bytes over each rank's links. A block
// (on GPUs a cluster of them) has token i of every rank's, and a thread of it tile k of all of
// these from beginning to end. So in place is safe: the thread that stores a tile of an output has
// pushed the same tile of the input, and loaded that of the residual if it is for this rank to add.
#pragma once

#include "algorithms/all_reduce_residual_rms_norm/token.hpp"

namespace tutti {

// Token `index` of every rank's. As shares of a message: slice k is tile k.
template <class Tokens>
struct TokenRound {
  const Tokens& tokens;
  Slice share, index;

  TUTTI_BODY Slice token(int rank) const { return static_cast<Slice>(rank) * share + index; }
  TUTTI_BODY bool has(int rank) const { return index < share && token(rank) < tokens.count; }
  TUTTI_BODY TileAt tile(int rank, Slice k) const {
    return has(rank) && k < tokens.tiles ? tokens.tile(token(rank), k) : TileAt{0, 0};
  }
};

// What of a round a thread does, in phases 2 and 3.
template <class Reduction, class Team, class Access>
class RoundWork {
  using T = typename Reduction::Element;
  using Words = typename Team::Words;
  using All = TokenWork<T, Team, Access>;
  using Round = TokenRound<decltype(All::tokens)>;
  static constexpr int kScatter = 0, kGather = 1;  // parts of a generation
  static constexpr bool kHolds = Team::kMaxRanks <= 4;

 public:
  TUTTI_BODY RoundWork(Team& team, const Work& work, Access access, Slice share)
      : all(team, work, access, tokens_of(work, share)), team_(team), work_(work), share_(share) {}

  const All all;

  TUTTI_BODY Round round(Slice i) const { return {all.tokens, share_, i}; }
  TUTTI_BODY Slice place(Slice i, Slice k) const { return i * all.tokens.tiles + k; }

  TUTTI_BODY void scatter(Slice i, Slice k, const typename Team::Column& column) const {
    const auto count = [&](int rank) { return round(i).tile(rank, k).count; };
    team_.template push_column<T>({kScatter, place(i, k)}, count, column);
  }

  // `own`: of this tile; afterwards, of the next one.
  TUTTI_BODY Outcome reduce(Slice i, Slice k, OwnTile<Words>& own) const {
    const TileAt mine = round(i).tile(work_.rank, k);
    const auto count = [&](int) { return mine.count; };
    typename Team::Column column;
    if (team_.template poll<T>({kScatter, place(i, k)}, count, column) != Outcome::kDone) {
      return Outcome::kFailed;
    }
    team_.place_own(column, own.input);
    const Words sum = reduce_column<Reduction>(team_, column, mine.count, 1.0);
    const Words added = plus_residual<T, Team>(sum, own.residual);
    team_.template push_all<T>({kGather, place(i, k)}, mine.count, added);
    if (mine.count > 0) all.store(work_.output, mine, added);
    all.load_next(i, k, own);
    return Outcome::kDone;
  }

  // Tile k of a token of every rank, and the parts of their sums.
  TUTTI_BODY Outcome gather(Slice i, Slice k, typename Team::Column& column,
                            float (&parts)[Team::kMaxRanks][Team::kTileParts]) const {
    const Round round = this->round(i);
    const auto count = [&](int rank) { return round.tile(rank, k).count; };
    Words own{};
    if (round.has(work_.rank)) own = all.load(work_.output, round.tile(work_.rank, k));
    if (team_.template poll<T>({kGather, place(i, k)}, count, column) != Outcome::kDone) {
      return Outcome::kFailed;
    }
    team_.place_own(column, own);
    TUTTI_UNROLL
    for (int r = 0; r < Team::kMaxRanks; ++r) {
      if (r >= team_.ranks()) break;
      const TileAt at = round.tile(r, k);
      sum_squares<T, Team>(column.at[r], at.count, parts[r]);
      if (round.has(r) && r != work_.rank) all.store(work_.output, at, column.at[r]);
    }
    return Outcome::kDone;
  }

  // The last tile of a thread is still in its column, where that is not too many registers.
  TUTTI_BODY Outcome normalise(Slice i, bool may) const {
    typename Team::Column column;
    Slice last = 0;
    float sums[Team::kMaxRanks];
    const auto squares = [&](Slice k, float(&parts)[Team::kMaxRanks][Team::kTileParts]) {
      last = k;
      return may ? gather(i, k, column, parts) : Outcome::kFailed;
    };
    const Outcome outcome = team_.sum_of_tokens(all.tokens.tiles, squares, sums);
    if (outcome != Outcome::kDone) return outcome;
    team_.for_each_of_token(all.tokens.tiles, [&](Slice k) {
      TUTTI_UNROLL
      for (int r = 0; r < Team::kMaxRanks; ++r) {
        if (r >= team_.ranks() || !round(i).has(r)) break;
        const TileAt at = round(i).tile(r, k);
        const Words added = kHolds && k == last ? column.at[r] : all.load(work_.output, at);
        all.store_scaled(k, at, added, inverse_rms(work_.norm, sums[r]));
      }
    });
    return Outcome::kDone;
  }

 private:
  static TUTTI_BODY TokenSpan tokens_of(const Work& work, Slice share) {
    const Slice first = static_cast<Slice>(work.rank) * share;
    const Slice left = first < work.norm.tokens ? work.norm.tokens - first : 0;
    return {first, left < share ? left : share};
  }

  Team& team_;
  const Work& work_;
  Slice share_;
};

template <class Reduction, class Team, class Access>
TUTTI_BODY Outcome rms_norm_two_shot_push(Team& team, const Work& work, Access access) {
  using T = typename Reduction::Element;
  const auto ranks = static_cast<Slice>(team.ranks());
  const Slice share = (work.norm.tokens + ranks - 1) / ranks;
  const RoundWork<Reduction, Team, Access> rounds(team, work, access, share);
  const Slice tiles = rounds.all.tokens.tiles;
  const Slice first = team.first_token(), first_tile = team.first_of_token();

  team.launch_wait();
  team.ask_launch();
  const auto ahead = team.template load_column<T>(rounds.round(first), first_tile);
  OwnTile<typename Team::Words> own{};  // the tile that this thread comes to next
  rounds.all.load_own(first, first_tile, own);
  rounds.all.hold_weights();
  // A thread that may not go on meets the others of its block all the same.
  bool may = team.open_packets() == Outcome::kDone;
  (void)team.for_each_token(may ? share : 0, [&](Slice i) {
    team.for_each_of_token(tiles, [&](Slice k) {
      const bool here = i == first && k == first_tile;
      rounds.scatter(i, k, here ? ahead : team.template load_column<T>(rounds.round(i), k));
    });
    return Outcome::kDone;
  });
  team.announce();

  (void)team.for_each_token(share, [&](Slice i) {
    team.for_each_of_token(tiles, [&](Slice k) {
      if (may) may = rounds.reduce(i, k, own) == Outcome::kDone;
    });
    return may ? Outcome::kDone : Outcome::kFailed;
  });
  team.launch_trigger();

  const Outcome outcome =
      team.for_each_token(share, [&](Slice i) { return rounds.normalise(i, may); });
  if (!may || outcome != Outcome::kDone) return Outcome::kFailed;
  return team.close_packets();
}

template <class Reduction, class Team>
TUTTI_BODY Outcome all_reduce_residual_rms_norm_two_shot_push(Team& team, const Work& work) {
  return team.template with_token_access<typename Reduction::Element>(
      work, [&](auto access) { return rms_norm_two_shot_push<Reduction>(team, work, access); });
}

}  // namespace tutti
