// From (element type, reduction) as values to a body instantiated for them.
#pragma once

#include <type_traits>

#include "algorithms/bodies.hpp"
#include "algorithms/reduction.hpp"
#include "tutti/types.hpp"

namespace tutti {

// A type as a value.
template <class T>
struct Tag {
  using Type = T;
};

// Sums and products of integers wrap: both signs share the instantiation of one.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::type_identity<T>>::type;

// Calls select(Tag<T>{}) with the element type and returns what it returns.
template <class Select>
auto with_element(DataType dtype, Select&& select) {
  switch (dtype) {
    case DataType::kFloat64:
      return select(Tag<double>{});
    case DataType::kFloat32:
      return select(Tag<float>{});
    case DataType::kFloat16:
      return select(Tag<Half>{});
    case DataType::kBfloat16:
      return select(Tag<Bfloat16>{});
    case DataType::kFloat8E4M3:
      return select(Tag<Float8E4M3>{});
    case DataType::kFloat8E5M2:
      return select(Tag<Float8E5M2>{});
    case DataType::kInt8:
      return select(Tag<std::int8_t>{});
    case DataType::kUint8:
      return select(Tag<std::uint8_t>{});
    case DataType::kInt32:
      return select(Tag<std::int32_t>{});
    case DataType::kUint32:
      return select(Tag<std::uint32_t>{});
    case DataType::kInt64:
      return select(Tag<std::int64_t>{});
    case DataType::kUint64:
      break;
  }
  return select(Tag<std::uint64_t>{});
}

// A team for tests may say kFloatSumsOnly: its bodies are instantiated for sums of floats alone.
template <class Team>
inline constexpr bool kFloatSumsOnly = requires {
  requires Team::kFloatSumsOnly;
};

template <class Average, class Select>
auto with_float_sum(DataType dtype, OpKind op, Select&& select) {
  using Result = decltype(select(Tag<Reduction<float, Sum>>{}));
  if (dtype != DataType::kFloat32) return Result{};
  if (op == OpKind::kSum) return select(Tag<Reduction<float, Sum>>{});
  const bool averages = op == OpKind::kAvg || op == OpKind::kPreMulSum;
  return averages ? select(Tag<Reduction<float, Average>>{}) : Result{};
}

template <class Average, class Select>
auto with_any_reduction(DataType dtype, OpKind op, Select&& select) {
  return with_element(dtype, [&](auto element) {
    using T = typename decltype(element)::Type;
    using Summed = std::conditional_t<std::is_same_v<Average, Sum>, T, Wrapping<T>>;
    switch (op) {
      case OpKind::kSum:
        return select(Tag<Reduction<Summed, Sum>>{});
      case OpKind::kProd:
        return select(Tag<Reduction<Wrapping<T>, Prod>>{});
      case OpKind::kMin:
        return select(Tag<Reduction<T, Min>>{});
      case OpKind::kMax:
        return select(Tag<Reduction<T, Max>>{});
      case OpKind::kAvg:
      case OpKind::kPreMulSum:
        break;
    }
    return select(Tag<Reduction<T, Average>>{});
  });
}

// Calls select(Tag<Reduction<T, Op>>{}) and returns what it returns. Averages and pre-multiplied
// sums are an Average; if that is Sum, plain sums share its instantiation, and so keep their sign.
// Returns an empty result for what `Team` has no instantiations of.
template <class Team = void, class Average = ScaledSum, class Select>
auto with_reduction(DataType dtype, OpKind op, Select&& select) {
  if constexpr (kFloatSumsOnly<Team>) {
    return with_float_sum<Average>(dtype, op, select);
  } else {
    return with_any_reduction<Average>(dtype, op, select);
  }
}

// Calls select(std::integral_constant<int, n>{}) and returns what it returns. n is the number of
// ranks where a kernel of its own for just so many is worth its compilation: for the sums that
// inference and training wait for. Else it is 0, any number.
template <class Reduction, class Select>
auto with_exact_ranks(int ranks, Select&& select) {
  using T = typename Reduction::Element;
  constexpr bool kIsWorthIt =
      std::is_same_v<typename Reduction::Op, Sum> &&
      (std::is_same_v<T, Bfloat16> || std::is_same_v<T, Half> || std::is_same_v<T, float>);
  if constexpr (kIsWorthIt) {
    if (ranks == 2) return select(std::integral_constant<int, 2>{});
    if (ranks == 4) return select(std::integral_constant<int, 4>{});
    if (ranks == 8) return select(std::integral_constant<int, 8>{});
  }
  return select(std::integral_constant<int, 0>{});
}

// For bodies that divide by KernelArgs::divisor where it is not 1, and know no multipliers.
template <class Team = void, class Select>
auto with_column_reduction(DataType dtype, OpKind op, Select&& select) {
  return with_reduction<Team, Sum>(dtype, op, select);
}

// What a body is instantiated for, as a word of its descriptor: select<Team>(dtype, op, f) calls
// f(Tag<Reduction<T, Op>>{}) and returns what it returns, as with_reduction() does.
struct EveryReduction {
  template <class Team = void, class Select>
  static auto select(DataType dtype, OpKind op, Select&& f) {
    return with_reduction<Team>(dtype, op, f);
  }
};
struct ColumnReductions {
  template <class Team = void, class Select>
  static auto select(DataType dtype, OpKind op, Select&& f) {
    return with_column_reduction<Team>(dtype, op, f);
  }
};
// As EveryReduction, but not of elements of one byte.
struct WideReductions {
  template <class Team = void, class Select>
  static auto select(DataType dtype, OpKind op, Select&& f) {
    using Result = decltype(f(Tag<Reduction<float, Sum>>{}));
    return with_reduction<Team>(dtype, op, [&](auto reduction) -> Result {
      using Element = typename decltype(reduction)::Type::Element;
      if constexpr (sizeof(Element) > 1) return f(reduction);
      return Result{};
    });
  }
};
// What moves bits has one instantiation, whatever they mean.
struct MovedBytes {
  template <class Team = void, class Select>
  static auto select(DataType, OpKind, Select&& f) {
    return f(Tag<Reduction<std::uint8_t, Sum>>{});
  }
};

}  // namespace tutti
