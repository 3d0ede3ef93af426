// What the rows of all_reduce_residual_rms_norm do with a token once it is summed up over the
// ranks:
//
//   residual_output = round(sum + residual)
//   output = round(residual_output / sqrt(mean(residual_output^2) + epsilon) * weight)
//
// In fp32, each rounded once; the mean's sum in the order of device/token_sum.hpp. 8-bit output
// is divided by its scale before it is rounded, and saturates.
#pragma once

#include <cmath>
#include <type_traits>

#include "algorithms/columns.hpp"
#include "device/packets.hpp"
#include "device/token_sum.hpp"

namespace tutti {

// A matrix of tokens in tiles: the last tile of a token may be short, unless `kWhole`.
template <int kTileElements, bool kWhole = false>
struct Tokens {
  Slice hidden;
  Slice count, tiles;  // tokens, and tiles of each

  TUTTI_BODY explicit Tokens(const KernelArgs& work)
      : hidden(work.norm.hidden),
        count(work.norm.tokens),
        tiles((hidden + kTileElements - 1) / kTileElements) {}

  // Of a vector of `hidden` elements; empty behind its end.
  TUTTI_BODY TileAt tile(Slice k) const {
    const Slice first = k * kTileElements;
    if constexpr (kWhole) return {first, kTileElements};
    const Slice left = first < hidden ? hidden - first : 0;
    return {first, static_cast<int>(left < kTileElements ? left : kTileElements)};
  }
  TUTTI_BODY TileAt tile(Slice token, Slice k) const {
    const TileAt at = tile(k);
    const std::size_t first = static_cast<std::size_t>(token) * hidden + at.first;
    return {first, kWhole || token < count ? at.count : 0};
  }
};

// What of a tile of the matrices lies in own memory.
template <class Words>
struct OwnTile {
  Words input, residual;
};

template <class T, class Team>
TUTTI_BODY typename Team::Words plus_residual(const typename Team::Words& sum,
                                              const typename Team::Words& residual) {
  constexpr int kElements = Team::template tile_elements<T>();
  auto result = Team::template tile_of<T>(sum);
  const auto other = Team::template tile_of<T>(residual);
  TUTTI_UNROLL
  for (int e = 0; e < kElements; ++e) {
    result.at[e] = from_float<T>(to_float(result.at[e]) + to_float(other.at[e]));
  }
  return Team::words_of(result);
}

// The sum of the squares of each 16 bytes of a tile's `count` elements.
template <class T, class Team>
TUTTI_BODY void sum_squares(const typename Team::Words& words, int count,
                            float (&parts)[Team::kTileParts]) {
  constexpr int kPerPart = 16 / sizeof(T);
  const auto tile = Team::template tile_of<T>(words);
  TUTTI_UNROLL
  for (int p = 0; p < Team::kTileParts; ++p) {
    float square[kPerPart];
    TUTTI_UNROLL
    for (int e = 0; e < kPerPart; ++e) {
      const float x = p * kPerPart + e < count ? to_float(tile.at[p * kPerPart + e]) : 0.0F;
      square[e] = x * x;
    }
    parts[p] = sum_as_tree(square);
  }
}

// By how much a token is multiplied.
TUTTI_BODY float inverse_rms(const TokenNorm& norm, float sum_of_squares) {
  return 1.0F / sqrtf(sum_of_squares / static_cast<float>(norm.hidden) + norm.epsilon);
}

// A tile of residual_output, and what it is multiplied by.
template <class Words>
struct Unscaled {
  TileAt at;
  Words added, weight;
  float factor;
};

// As Output, of which `scale` is where that has 8 bits.
template <class T, class Output, class Team, class Access>
TUTTI_BODY void store_normalised(const Team& team, const TokenNorm& norm, Access access,
                                 const Unscaled<typename Team::Words>& tile) {
  constexpr int kElements = Team::template tile_elements<T>();
  const auto x = Team::template tile_of<T>(tile.added);
  const auto w = Team::template tile_of<T>(tile.weight);
  Tile<Output, Team::template tile_elements<Output>()> result;
  TUTTI_UNROLL
  for (int e = 0; e < kElements; ++e) {
    float value = to_float(x.at[e]) * tile.factor * to_float(w.at[e]);
    if constexpr (sizeof(Output) == 1) value = value / norm.scale;
    result.at[e] = from_float<Output>(value);
  }
  TUTTI_UNROLL
  for (int e = kElements; e < Team::template tile_elements<Output>(); ++e) result.at[e] = {};
  team.template store_to<Output>(norm.output, access, tile.at, Team::words_of(result));
}

// Elements are written as the operation says.
struct AnyOutput {};

template <class T, class Output, class Team, class Access>
TUTTI_BODY void store_result(const Team& team, const TokenNorm& norm, Access access,
                             const Unscaled<typename Team::Words>& tile) {
  if constexpr (!std::is_same_v<Output, AnyOutput>) {
    store_normalised<T, Output>(team, norm, access, tile);
  } else {
    switch (norm.output_dtype) {
      case DataType::kFloat8E4M3:
        return store_normalised<T, Float8E4M3>(team, norm, access, tile);
      case DataType::kFloat8E5M2:
        return store_normalised<T, Float8E5M2>(team, norm, access, tile);
      default:
        return store_normalised<T, T>(team, norm, access, tile);
    }
  }
}

// What a body does with tokens that come over the links, by accesses of one width.
template <class T, class Team, class Access>
class TokenWork {
  using Words = typename Team::Words;

 public:
  const Tokens<Team::template tile_elements<T>(), Access::kIsWhole> tokens;

  TUTTI_BODY TokenWork(Team& team, const KernelArgs& work, Access access)
      : tokens(work), team_(team), work_(work), access_(access) {}

  TUTTI_BODY Words load(const std::byte* buffer, TileAt at) const {
    return team_.template load_from<T>(buffer, access_, at);
  }
  TUTTI_BODY void store(std::byte* buffer, TileAt at, const Words& words) const {
    team_.template store_to<T>(buffer, access_, at, words);
  }
  TUTTI_BODY Words load_weight(Slice k) const { return load(work_.norm.weight, tokens.tile(k)); }
  // Once for all tokens, before the first is normalised.
  TUTTI_BODY void hold_weights() const {
    const bool any = team_.first_token() < tokens.count;
    team_.hold_beside(any ? tokens.tiles : 0, [&](Slice k) { return load_weight(k); });
  }

  // Nothing where there is no such token, or tile.
  TUTTI_BODY void load_own(Slice token, Slice k, OwnTile<Words>& own) const {
    if (token >= tokens.count || k >= tokens.tiles) return;
    const TileAt at = tokens.tile(token, k);
    own = {load(work_.input, at), load(work_.norm.residual, at)};
  }
  // Of the tile that comes next to this thread.
  TUTTI_BODY void load_next(Slice token, Slice k, OwnTile<Words>& own) const {
    const Slice next = team_.next_of_token(k);
    const bool is_last = next >= tokens.tiles;
    load_own(is_last ? team_.next_token(token) : token, is_last ? team_.first_of_token() : next,
             own);
  }

  // added(k, at, words) gives tile k of residual_output, and leaves it there. Tiles that the team
  // does not hold meanwhile are loaded once more.
  template <class Added>
  TUTTI_BODY Outcome normalise(Slice token, Added&& added) const {
    float sum;
    const auto square = [&](Slice k, float(&parts)[Team::kTileParts]) {
      const TileAt at = tokens.tile(token, k);
      Words words;
      if (added(k, at, words) != Outcome::kDone) return Outcome::kFailed;
      sum_squares<T, Team>(words, at.count, parts);
      if (team_.holds(k)) team_.hold(k, words);
      return Outcome::kDone;
    };
    if (team_.sum_of_token(tokens.tiles, square, sum) != Outcome::kDone) return Outcome::kFailed;

    const float factor = inverse_rms(work_.norm, sum);
    team_.for_each_of_token(tokens.tiles, [&](Slice k) {
      const TileAt at = tokens.tile(token, k);
      const bool held = team_.holds(k);
      const Words words = held ? team_.held(k) : load(work_.output, at);
      store_scaled(k, at, words, factor);
    });
    return Outcome::kDone;
  }

  // Tile k of a token, which lies at `at`.
  TUTTI_BODY void store_scaled(Slice k, TileAt at, const Words& added, float factor) const {
    const Words weight = team_.holds(k) ? team_.held_beside(k) : load_weight(k);
    store_result<T, AnyOutput>(team_, work_.norm, access_, {at, added, weight, factor});
  }

 private:
  Team& team_;
  const KernelArgs& work_;
  Access access_;
};

}  // namespace tutti
