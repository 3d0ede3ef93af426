// What an NVLink switch does with a tile: it reduces what lies at one place of every rank's buffer,
// and stores into all of them at once. Without multicast the same is done by a loop over the peers,
// which refuses what the switch refuses; so algorithms over it are tested everywhere.
#pragma once

#include <cassert>

#include "algorithms/instantiate.hpp"
#include "algorithms/reduction.hpp"
#include "device/team.hpp"

namespace tutti {

template <class T, class... Others>
inline constexpr bool kIsOneOf = (std::is_same_v<T, Others> || ...);

// What switches reduce as rule 4 has it, but for the order: they add fp16 and bf16 in fp32 and
// round once. Their minima of floats pass over NaN, and 8-bit floats need a later one than
// Hopper's. Averages divide what comes back, which must not have been rounded.
template <class T, class Op>
inline constexpr bool kSwitchReduces = false;
template <class T>
inline constexpr bool kSwitchReduces<T, Sum> =
    kIsOneOf<T, double, float, Half, Bfloat16, std::uint32_t, std::uint64_t>;
template <class T>
inline constexpr bool kSwitchReduces<T, ScaledSum> = kIsOneOf<T, double, float>;
template <class T>
inline constexpr bool kSwitchReduces<T, Min> =
    kIsOneOf<T, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;
template <class T>
inline constexpr bool kSwitchReduces<T, Max> = kSwitchReduces<T, Min>;

// Calls select(Tag<Reduction<T, Op>>{}) where the switch can do it, and returns what it returns;
// else a value of its type that was not set.
template <class Team = void, class Select>
auto with_switch_reduction(DataType dtype, OpKind op, Select&& select) {
  using Result = decltype(select(Tag<Reduction<float, Sum>>{}));
  return with_reduction<Team>(dtype, op, [&](auto reduction) -> Result {
    using R = typename decltype(reduction)::Type;
    if constexpr (kSwitchReduces<typename R::Element, typename R::Op>) return select(reduction);
    return Result{};
  });
}

struct SwitchReductions {
  template <class Team = void, class Select>
  static auto select(DataType dtype, OpKind op, Select&& f) {
    return with_switch_reduction<Team>(dtype, op, f);
  }
};

// Multipliers would have to be applied before the switch sees the data.
inline bool switch_reduces(DataType dtype, OpKind op) {
  return op != OpKind::kPreMulSum && with_switch_reduction(dtype, op, [](auto) { return true; });
}

// The order in which a switch takes the ranks is its own. Here it differs between tiles, operations
// and the ranks that ask.
class SwitchOrder {
 public:
  TUTTI_BODY SwitchOrder(const KernelArgs& work, TileAt tile)
      : ranks_(static_cast<unsigned>(work.ranks)) {
    auto lot = static_cast<std::uint32_t>(tile.first) * 0x9e3779b1u;
    lot ^= static_cast<std::uint32_t>(work.sequence) * 0x85ebca6bu;
    lot ^= static_cast<std::uint32_t>(work.rank) * 0xc2b2ae35u;
    lot *= 0x2c1b3c6du;
    first_ = (lot >> 16) % ranks_;
    step_ = (lot & 0x8000u) != 0 ? 1 : ranks_ - 1;
  }
  TUTTI_BODY int rank(int k) const {
    return static_cast<int>((first_ + static_cast<unsigned>(k) * step_) % ranks_);
  }

 private:
  unsigned ranks_, first_, step_;
};

// Into every rank's output.
template <class T, class Team, class Access, class Value>
TUTTI_BODY void store_by_switch(const Team& team, const Pointers<Team::kMaxRanks>& outputs,
                                Access access, TileAt tile, const Value& value) {
  if constexpr (Team::kHasMulticast && Access::kIsWhole) {
    if (team.has_multicast_output()) return team.template store_multicast<T>(tile, value);
  }
  team.template store_all<T>(outputs, access, tile, value);
}

// Every rank's buffers as one. Tiles that are not whole go by way of the peers.
template <class Reduction, class Team>
class Fabric {
  using T = typename Reduction::Element;
  using Op = typename Reduction::Op;
  static constexpr int kElements = Team::template tile_elements<T>();
  using Value = Tile<T, kElements>;

 public:
  TUTTI_BODY Fabric(const Team& team, const KernelArgs& work,
                    const Buffers<Team::kMaxRanks>& buffers)
      : team_(team), work_(work), buffers_(buffers), scalars_(team, work) {}

  // The tile of every rank's input, reduced.
  template <class Access>
  TUTTI_BODY Value reduce(Access access, TileAt tile) const {
    if (team_.template is_whole_tile<T>(buffers_.inputs, access, tile))
      return load_reduce(access, tile);
    return reduce_tile<Reduction>(team_, buffers_.inputs, access, tile, scalars_);
  }

  template <class Access>
  TUTTI_BODY void store(Access access, TileAt tile, const Value& value) const {
    store_by_switch<T>(team_, buffers_.outputs, access, tile, value);
  }

  // For whole tiles alone.
  template <class Access>
  TUTTI_BODY Value load_reduce(Access access, TileAt tile) const {
    static_assert(kSwitchReduces<T, Op>, "no switch reduces this");
    if constexpr (Team::kHasMulticast && Access::kIsWhole) {
      if (team_.has_multicast_input())
        return averaged(team_.template load_reduce<T, kSwitchOp>(tile));
    }
#if !defined(__CUDACC__)
    assert(team_.template is_whole_tile<T>(buffers_.inputs, access, tile) &&
           "a switch takes whole vectors of 16 bytes, aligned to them");
#endif
    return emulated(access, tile);
  }

 private:
  static constexpr SwitchOp kSwitchOp = std::is_same_v<Op, Min>   ? SwitchOp::kMin
                                        : std::is_same_v<Op, Max> ? SwitchOp::kMax
                                                                  : SwitchOp::kSum;

  TUTTI_BODY Value averaged(Value sum) const {
    if constexpr (Op::kScaled) {
      TUTTI_UNROLL
      for (int e = 0; e < kElements; ++e) sum.at[e] = narrow<Reduction>(sum.at[e], scalars_);
    }
    return sum;
  }

  // All multipliers are 1: it does not matter which of them is whose.
  template <class Access>
  TUTTI_BODY Value emulated(Access access, TileAt tile) const {
    const SwitchOrder order(work_, tile);
    return reduce_one_by_one<Reduction>(team_, scalars_, [&](int k) {
      return team_.template load<T>(buffers_.inputs.of(order.rank(k)), access, tile);
    });
  }

  const Team& team_;
  const KernelArgs& work_;
  const Buffers<Team::kMaxRanks>& buffers_;
  const Scalars<Reduction, Team::kMaxRanks> scalars_;
};

}  // namespace tutti
