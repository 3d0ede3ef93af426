// The rows of two kernels: a row of all_reduce that adds the residual to what it reduces, and
// behind it a kernel that normalises what is then in own memory.
//
//   kernel 1  as the row of all_reduce says; whoever has a sum adds the residual, and then sends it
//
//   kernel 2  for each token: load residual_output, sum up the squares over the block; normalise,
//             store to output
//
// Cost: that row's, and 2 x bytes of own memory. Behind the links every multiprocessor can work on
// what is normalised, and tokens need not stay with the blocks that reduced them. In place is safe
// where it is in all_reduce: when the second kernel begins, nobody reads this rank's buffers.
#pragma once

#include "algorithms/all_reduce/one_shot_push.hpp"
#include "algorithms/all_reduce/two_shot.hpp"
#include "algorithms/all_reduce/two_shot_push.hpp"
#include "algorithms/all_reduce_residual_rms_norm/rows.hpp"
#include "algorithms/all_reduce_residual_rms_norm/token.hpp"

namespace tutti {

// residual_output = round(sum + residual), as an Epilogue.
struct PlusResidual {
  // The many blocks behind it would crowd on the few multiprocessors that are free first: measured
  // on 2 H200s, up to 1 us later at 64 to 256 tokens.
  static constexpr bool kTriggers = false;
  template <class T, class Team>
  static TUTTI_BODY auto load(const Team& team, const KernelArgs& work, TileAt tile) {
    return team.template load_from<T>(work.norm.residual, tile);
  }
  template <class T, class Team>
  static TUTTI_BODY auto apply(const typename Team::Words& sum,
                               const typename Team::Words& residual) {
    return plus_residual<T, Team>(sum, residual);
  }
  template <class T, class Team, int kElements>
  static TUTTI_BODY auto apply(const Tile<T, kElements>& sum,
                               const typename Team::Words& residual) {
    return Team::template tile_of<T>(plus_residual<T, Team>(Team::words_of(sum), residual));
  }
};

// `Output`: what elements are written as; AnyOutput: as the operation says.
template <class T, class Output, class Team, class Access>
TUTTI_BODY Outcome normalise_tokens(Team& team, const KernelArgs& work, Access access) {
  using Words = typename Team::Words;
  const Tokens<Team::template tile_elements<T>(), Access::kIsWhole> tokens(work);
  const auto weight = [&](Slice k) {
    return team.template load_from<T>(work.norm.weight, access, tokens.tile(k));
  };
  const auto square = [&](Slice k, const Words& words, float(&parts)[Team::kTileParts]) {
    sum_squares<T, Team>(words, tokens.tile(k).count, parts);
  };

  team.launch_wait();
  team.launch_trigger();
  return team.for_each_token(tokens.count, [&](Slice token) {
    const auto load = [&](Slice k) {
      return team.template load_from<T>(work.output, access, tokens.tile(token, k));
    };
    float sum;
    if (team.sum_of_loaded(tokens.tiles, load, weight, square, sum) != Outcome::kDone) {
      return Outcome::kFailed;
    }
    const float factor = inverse_rms(work.norm, sum);
    team.for_each_loaded(tokens.tiles, load, weight, [&](Slice k, const Words& x, const Words& w) {
      const Unscaled<Words> tile{tokens.tile(token, k), x, w, factor};
      store_result<T, Output>(team, work.norm, access, tile);
    });
    return Outcome::kDone;
  });
}

template <class Team>
BodyOf<Team> host_all_reduce_residual_rms_norm_one_shot_push_split(DataType dtype, OpKind) {
  return with_normalised<Team>(dtype, [](auto reduction) -> BodyOf<Team> {
    return all_reduce_one_shot_push<typename decltype(reduction)::Type, Team, PlusResidual>;
  });
}

template <class Team>
BodyOf<Team> host_all_reduce_residual_rms_norm_two_shot(DataType dtype, OpKind) {
  return with_normalised<Team>(dtype, [](auto reduction) -> BodyOf<Team> {
    return all_reduce_two_shot<typename decltype(reduction)::Type, Team, PlusResidual>;
  });
}

template <class Team>
BodyOf<Team> host_all_reduce_residual_rms_norm_two_shot_push(DataType dtype, OpKind) {
  return with_normalised<Team>(dtype, [](auto reduction) -> BodyOf<Team> {
    return all_reduce_two_shot_push<typename decltype(reduction)::Type, Team, PlusResidual>;
  });
}

template <class Team>
BodyOf<Team> host_normalise_tokens(DataType dtype, OpKind) {
  return with_normalised<Team>(dtype, [](auto reduction) -> BodyOf<Team> {
    using T = typename decltype(reduction)::Type::Element;
    return [](Team& team, const KernelArgs& work) {
      return team.template with_token_access<T>(
          work, [&](auto access) { return normalise_tokens<T, AnyOutput>(team, work, access); });
    };
  });
}

}  // namespace tutti
