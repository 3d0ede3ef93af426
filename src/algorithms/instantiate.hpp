// From (element type, reduction) as values to a body instantiated for them.
#pragma once

#include <type_traits>

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

// Calls select(Tag<Reduction<T, Op>>{}) and returns what it returns.
template <class T, class Select>
auto with_op(OpKind op, Select&& select) {
  switch (op) {
    case OpKind::kSum:
      return select(Tag<Reduction<Wrapping<T>, Sum>>{});
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
  return select(Tag<Reduction<T, ScaledSum>>{});
}

template <class Select>
auto with_reduction(DataType dtype, OpKind op, Select&& select) {
  switch (dtype) {
    case DataType::kFloat64:
      return with_op<double>(op, select);
    case DataType::kFloat32:
      return with_op<float>(op, select);
    case DataType::kFloat16:
      return with_op<Half>(op, select);
    case DataType::kBfloat16:
      return with_op<Bfloat16>(op, select);
    case DataType::kFloat8E4M3:
      return with_op<Float8E4M3>(op, select);
    case DataType::kFloat8E5M2:
      return with_op<Float8E5M2>(op, select);
    case DataType::kInt8:
      return with_op<std::int8_t>(op, select);
    case DataType::kUint8:
      return with_op<std::uint8_t>(op, select);
    case DataType::kInt32:
      return with_op<std::int32_t>(op, select);
    case DataType::kUint32:
      return with_op<std::uint32_t>(op, select);
    case DataType::kInt64:
      return with_op<std::int64_t>(op, select);
    case DataType::kUint64:
      break;
  }
  return with_op<std::uint64_t>(op, select);
}

}  // namespace tutti
