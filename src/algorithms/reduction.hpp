// How elements of one tile become one: rule 4 as code. The accumulator starts from rank 0's value,
// ranks follow in order, the result is rounded once.
#pragma once

#include <type_traits>

#include "device/team.hpp"
#include "tutti/device/scalar.hpp"
#include "tutti/types.hpp"

namespace tutti {

// Integers wrap: their arithmetic runs in the unsigned type of the same width.
template <class A>
TUTTI_BODY A wrapping_add(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    using U = std::make_unsigned_t<A>;
    return static_cast<A>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return a + b;
  }
}

template <class A>
TUTTI_BODY A wrapping_multiply(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    using U = std::make_unsigned_t<A>;
    // Widened first: a product of two uint16-or-smaller values would overflow int.
    return static_cast<A>(static_cast<U>(1u * static_cast<U>(a) * static_cast<U>(b)));
  } else {
    return a * b;
  }
}

template <class A>
TUTTI_BODY bool is_negative_zero_or_less(A a) {
  if constexpr (sizeof(A) == 8) {
    return __builtin_bit_cast(long long, a) < 0;
  } else {
    return __builtin_bit_cast(int, a) < 0;
  }
}

// IEEE 754-2019 minimum and maximum: NaN wins, -0 < +0. Which NaN is left open.
template <class A>
TUTTI_BODY A minimum(A a, A b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<A, float>) {
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
  }
#endif
  if constexpr (std::is_floating_point_v<A>) {
    if (a != a) return a;
    if (b != b) return b;
    if (a == b) return is_negative_zero_or_less(a) ? a : b;
  }
  return a < b ? a : b;
}

template <class A>
TUTTI_BODY A maximum(A a, A b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<A, float>) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
  }
#endif
  if constexpr (std::is_floating_point_v<A>) {
    if (a != a) return a;
    if (b != b) return b;
    if (a == b) return is_negative_zero_or_less(a) ? b : a;
  }
  return a > b ? a : b;
}

struct Sum {
  static constexpr bool kScaled = false;
  template <class A>
  static TUTTI_BODY A combine(A a, A b) {
    return wrapping_add(a, b);
  }
};
// Average and pre-multiplied sum: each input times its rank's scalar, the sum over a divisor. The
// scalar of an average and the divisor of a pre-multiplied sum are 1, which changes no bit.
struct ScaledSum : Sum {
  static constexpr bool kScaled = true;
};
struct Prod {
  static constexpr bool kScaled = false;
  template <class A>
  static TUTTI_BODY A combine(A a, A b) {
    return wrapping_multiply(a, b);
  }
};
struct Min {
  static constexpr bool kScaled = false;
  template <class A>
  static TUTTI_BODY A combine(A a, A b) {
    return minimum(a, b);
  }
};
struct Max {
  static constexpr bool kScaled = false;
  template <class A>
  static TUTTI_BODY A combine(A a, A b) {
    return maximum(a, b);
  }
};

template <class T, class Op_>
struct Reduction {
  using Element = T;
  using Op = Op_;
  using Accumulator = typename ElementTraits<T>::Accumulator;
};

template <class T>
TUTTI_BODY auto to_accumulator(T x) {
  if constexpr (std::is_same_v<typename ElementTraits<T>::Accumulator, T>) {
    return x;
  } else {
    return to_float(x);
  }
}

template <class A>
TUTTI_BODY ScalarBits bits_of_scalar(A scalar) {
  if constexpr (std::is_integral_v<A>) {
    return static_cast<ScalarBits>(scalar);
  } else if constexpr (sizeof(A) == 8) {
    return __builtin_bit_cast(ScalarBits, scalar);
  } else {
    return __builtin_bit_cast(std::uint32_t, scalar);
  }
}

template <class A>
TUTTI_BODY A scalar_of_bits(ScalarBits bits) {
  if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(bits);
  } else if constexpr (sizeof(A) == 8) {
    return __builtin_bit_cast(A, bits);
  } else {
    return __builtin_bit_cast(A, static_cast<std::uint32_t>(bits));
  }
}

// Tells the peers this rank's multiplier, if the reduction has any: released by the next arrival.
template <class Reduction, class Team>
TUTTI_BODY void publish_scalar(Team& team, const KernelArgs& work) {
  using T = typename Reduction::Element;
  if constexpr (Reduction::Op::kScaled) {
    ScalarBits scalar = work.scalar;
    if (work.device_scalar != nullptr) {
      scalar = bits_of_scalar(to_accumulator(team.template load_scalar<T>(work.device_scalar)));
    }
    team.publish_scalar(scalar);
  }
}

// The multipliers of all ranks, in registers. Empty for reductions that have none.
template <class Reduction, int kRanks, bool = Reduction::Op::kScaled>
struct Scalars {
  template <class Team>
  TUTTI_BODY Scalars(const Team&, const KernelArgs&) {}
};
template <class Reduction, int kRanks>
struct Scalars<Reduction, kRanks, true> {
  using A = typename Reduction::Accumulator;
  A at[kRanks];
  A divisor;
  template <class Team>
  TUTTI_BODY Scalars(const Team& team, const KernelArgs& work)
      : divisor(static_cast<A>(work.divisor)) {
    TUTTI_UNROLL
    for (int r = 0; r < kRanks; ++r) {
      at[r] = A{1};
      if (work.scaled_by_peers && r < work.ranks) at[r] = scalar_of_bits<A>(team.scalar_of(r));
    }
  }
  TUTTI_BODY A of(int rank) const {
    A scalar = at[0];
    TUTTI_UNROLL
    for (int r = 1; r < kRanks; ++r) scalar = rank == r ? at[r] : scalar;
    return scalar;
  }
};

template <class T>
TUTTI_BODY T from_accumulator(typename ElementTraits<T>::Accumulator a) {
  if constexpr (std::is_same_v<typename ElementTraits<T>::Accumulator, T>) {
    return a;
  } else {
    return from_float<T>(a);
  }
}

// Rounding in the middle of a sum would be a defect: the accumulator widens once, here.
template <class Reduction, class Scalars>
TUTTI_BODY typename Reduction::Accumulator widen(typename Reduction::Element x, int rank,
                                                 const Scalars& scalars) {
  using A = typename Reduction::Accumulator;
  A a = to_accumulator(x);
  if constexpr (Reduction::Op::kScaled) a = wrapping_multiply<A>(a, scalars.of(rank));
  return a;
}

// Adds `part`, rank `rank`'s tile, to `sum`.
template <class Reduction, class Scalars, int kElements>
TUTTI_BODY void accumulate(Tile<typename Reduction::Accumulator, kElements>& sum,
                           const Tile<typename Reduction::Element, kElements>& part, int rank,
                           const Scalars& scalars) {
  TUTTI_UNROLL
  for (int e = 0; e < kElements; ++e) {
    const auto a = widen<Reduction>(part.at[e], rank, scalars);
    sum.at[e] = rank == 0 ? a : Reduction::Op::combine(sum.at[e], a);
  }
}

// The same from where the elements lie. What a short tile lacks is zero in the sum.
template <class Reduction, class Scalars, int kElements>
TUTTI_BODY void accumulate(Tile<typename Reduction::Accumulator, kElements>& sum,
                           const TileInPlace<typename Reduction::Element>& part, int rank,
                           const Scalars& scalars) {
  if (rank == 0) {
    for (int e = 0; e < part.count; ++e) sum.at[e] = widen<Reduction>(part.at[e], 0, scalars);
    for (int e = part.count; e < kElements; ++e) sum.at[e] = {};
    return;
  }
  for (int e = 0; e < part.count; ++e) {
    const auto a = widen<Reduction>(part.at[e], rank, scalars);
    sum.at[e] = Reduction::Op::combine(sum.at[e], a);
  }
}

// Ranks 0 and 1 together: their sum is stored once, instead of a copy and then the sum.
template <class Reduction, class Scalars, int kElements>
TUTTI_BODY void start_sum(Tile<typename Reduction::Accumulator, kElements>& sum,
                          const TileInPlace<typename Reduction::Element>& first,
                          const TileInPlace<typename Reduction::Element>& second,
                          const Scalars& scalars) {
  for (int e = 0; e < first.count; ++e) {
    sum.at[e] = Reduction::Op::combine(widen<Reduction>(first.at[e], 0, scalars),
                                       widen<Reduction>(second.at[e], 1, scalars));
  }
  for (int e = first.count; e < kElements; ++e) sum.at[e] = {};
}

// Whether an element's sum is the result as it stands.
template <class Reduction>
constexpr bool is_its_own_sum() {
  return std::is_same_v<typename Reduction::Accumulator, typename Reduction::Element> &&
         !Reduction::Op::kScaled;
}

// What becomes of the sum of one element.
template <class Reduction, class Scalars>
TUTTI_BODY typename Reduction::Element narrow(typename Reduction::Accumulator sum,
                                              const Scalars& scalars) {
  using A = typename Reduction::Accumulator;
  if constexpr (Reduction::Op::kScaled) sum = static_cast<A>(sum / scalars.divisor);
  return from_accumulator<typename Reduction::Element>(sum);
}

// Reduces a tile where registers are scarce: the loads of all ranks are in flight before the first
// is used, what they bring stays words until it is added, and no more than eight sums are built at
// a time. `kClears`: see below.
template <class Reduction, bool kClears, class Team, class Access, int kRanks, class Scalars>
TUTTI_BODY auto reduce_ahead(const Team& team, const Pointers<kRanks>& from, Access access,
                             TileAt tile, const Scalars& scalars) {
  using T = typename Reduction::Element;
  constexpr int kElements = Team::template tile_elements<T>();
  constexpr int kPiece = kElements < 8 ? kElements : 8;
  using Words = Tile<std::uint32_t, kPiece * sizeof(T) / 4>;
  using Pieces = Tile<Words, kElements / kPiece>;

  Pieces part[kRanks];
  TUTTI_UNROLL
  for (int r = 0; r < kRanks; ++r) {
    // What some path around a loop leaves unset holds its registers all the way around.
    if constexpr (kClears) part[r] = {};
    if (r > 0 && r >= team.ranks()) continue;
    part[r] = __builtin_bit_cast(Pieces, team.template load<T>(from.of(r), access, tile));
  }
  team.end_of_loads();

  Tile<T, kElements> result;
  TUTTI_UNROLL
  for (int p = 0; p < kElements / kPiece; ++p) {
    Tile<typename Reduction::Accumulator, kPiece> sum;
    TUTTI_UNROLL
    for (int r = 0; r < kRanks; ++r) {
      if (r > 0 && r >= team.ranks()) continue;
      const auto piece = __builtin_bit_cast(Tile<T, kPiece>, part[r].at[p]);
      accumulate<Reduction>(sum, piece, r, scalars);
    }
    TUTTI_UNROLL
    for (int e = 0; e < kPiece; ++e) {
      result.at[p * kPiece + e] = narrow<Reduction>(sum.at[e], scalars);
    }
  }
  return result;
}

// Reduces what load(0), load(1) and so on give, a tile of each rank: one after the other, however
// short it is.
template <class Reduction, class Team, class Scalars, class Load>
TUTTI_BODY auto reduce_one_by_one(const Team& team, const Scalars& scalars, Load&& load) {
  using T = typename Reduction::Element;
  constexpr int kElements = Team::template tile_elements<T>();
  constexpr bool kInPlace = std::is_same_v<decltype(load(0)), TileInPlace<T>>;
  Tile<typename Reduction::Accumulator, kElements> sum;
  int next = 0;
  if constexpr (kInPlace) {
    if (team.ranks() > 1) {
      start_sum<Reduction>(sum, load(0), load(1), scalars);
      next = 2;
    }
  }
  TUTTI_NO_UNROLL
  for (int r = next; r < team.ranks(); ++r) accumulate<Reduction>(sum, load(r), r, scalars);
  if constexpr (kInPlace && is_its_own_sum<Reduction>()) {
    return sum;
  } else {
    Tile<T, kElements> result;
    TUTTI_UNROLL
    for (int e = 0; e < kElements; ++e) result.at[e] = narrow<Reduction>(sum.at[e], scalars);
    return result;
  }
}

// Reduces tile `tile` of every rank's buffer. Bodies with one loop can spare the registers of wider
// types, and the instructions as well.
template <class Reduction, bool kClears = sizeof(typename Reduction::Element) == 1, class Team,
          class Access, int kRanks, class Scalars>
TUTTI_BODY auto reduce_tile(const Team& team, const Pointers<kRanks>& from, Access access,
                            TileAt tile, const Scalars& scalars) {
  using T = typename Reduction::Element;
  if constexpr (Access::kLoadsAhead) {
    return reduce_ahead<Reduction, kClears>(team, from, access, tile, scalars);
  } else {
    return reduce_one_by_one<Reduction>(team, scalars, [&](int rank) {
      return team.template load<T>(from.of(rank), access, tile);
    });
  }
}

}  // namespace tutti
