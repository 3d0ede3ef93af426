/// \file
/// Element types, reductions, backends and streams.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

#include "tutti/export.hpp"
#include "tutti/status.hpp"

// CUDA's types, declared so that DataTypeOf works whichever header is included first.
struct CUstream_st;
struct __half;         // NOLINT(bugprone-reserved-identifier)
struct __nv_bfloat16;  // NOLINT(bugprone-reserved-identifier)
struct __nv_fp8_e4m3;  // NOLINT(bugprone-reserved-identifier)
struct __nv_fp8_e5m2;  // NOLINT(bugprone-reserved-identifier)

namespace tutti {

/// A CUDA stream: cudaStream_t and CUstream are this type. The host backend ignores it.
using Stream = CUstream_st*;

/// The type of elements.
enum class DataType : std::uint8_t {
  kFloat64,
  kFloat32,
  kFloat16,
  kBfloat16,
  kFloat8E4M3,  ///< OCP: no infinity; the largest finite value is 448
  kFloat8E5M2,
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
};
/// All of DataType.
inline constexpr std::array<DataType, 12> kAllDataTypes = {
    DataType::kFloat64,    DataType::kFloat32,    DataType::kFloat16, DataType::kBfloat16,
    DataType::kFloat8E4M3, DataType::kFloat8E5M2, DataType::kInt8,    DataType::kUint8,
    DataType::kInt32,      DataType::kUint32,     DataType::kInt64,   DataType::kUint64,
};

// tutti/device/scalar.hpp
struct Half;
struct Bfloat16;
struct Float8E4M3;
struct Float8E5M2;

namespace detail {
template <DataType dtype>
struct DataTypeConstant {
  static constexpr DataType value = dtype;
};
}  // namespace detail

/// The DataType of elements of type T: `DataTypeOf<float>::value` is DataType::kFloat32. Specialise
/// it for your own type that has the bits of one of these.
template <class T>
struct DataTypeOf;
// clang-format off
template <> struct DataTypeOf<double> : detail::DataTypeConstant<DataType::kFloat64> {};
template <> struct DataTypeOf<float> : detail::DataTypeConstant<DataType::kFloat32> {};
template <> struct DataTypeOf<Half> : detail::DataTypeConstant<DataType::kFloat16> {};
template <> struct DataTypeOf<__half> : detail::DataTypeConstant<DataType::kFloat16> {};
template <> struct DataTypeOf<Bfloat16> : detail::DataTypeConstant<DataType::kBfloat16> {};
template <> struct DataTypeOf<__nv_bfloat16> : detail::DataTypeConstant<DataType::kBfloat16> {};
template <> struct DataTypeOf<Float8E4M3> : detail::DataTypeConstant<DataType::kFloat8E4M3> {};
template <> struct DataTypeOf<__nv_fp8_e4m3> : detail::DataTypeConstant<DataType::kFloat8E4M3> {};
template <> struct DataTypeOf<Float8E5M2> : detail::DataTypeConstant<DataType::kFloat8E5M2> {};
template <> struct DataTypeOf<__nv_fp8_e5m2> : detail::DataTypeConstant<DataType::kFloat8E5M2> {};
template <> struct DataTypeOf<signed char> : detail::DataTypeConstant<DataType::kInt8> {};
template <> struct DataTypeOf<unsigned char> : detail::DataTypeConstant<DataType::kUint8> {};
template <> struct DataTypeOf<int> : detail::DataTypeConstant<DataType::kInt32> {};
template <> struct DataTypeOf<unsigned> : detail::DataTypeConstant<DataType::kUint32> {};
template <> struct DataTypeOf<long> : detail::DataTypeConstant<DataType::kInt64> {};
template <> struct DataTypeOf<unsigned long> : detail::DataTypeConstant<DataType::kUint64> {};
template <> struct DataTypeOf<long long> : detail::DataTypeConstant<DataType::kInt64> {};
template <> struct DataTypeOf<unsigned long long> : detail::DataTypeConstant<DataType::kUint64> {};
// clang-format on

/// Bytes of one element.
TUTTI_API std::size_t size_of(DataType dtype);
TUTTI_API bool is_floating(DataType dtype);
/// "bf16", "fp8_e4m3", "int32", ...
TUTTI_API std::string_view to_string(DataType dtype);
/// The names of to_string(), and "bfloat16", "half", "float", "double". Others: kInvalidArgument.
TUTTI_API Result<DataType> parse_data_type(std::string_view);

/// How the elements of all ranks are reduced to one.
///
/// Ranks are taken in the order 0, 1, ..., n - 1, starting with rank 0's value. fp16, bf16 and fp8
/// accumulate in fp32 and round once; other types use their own arithmetic, and integers wrap. If
/// an input is NaN, so is the result. A result that is finite in fp32 but beyond fp8's range
/// saturates. A result that overflows fp32 is infinite; fp8_e5m2 keeps that, and fp8_e4m3, which
/// has no infinity, becomes +-448.
enum class OpKind : std::uint8_t {
  kSum,
  kProd,
  kMin,  ///< -0 is less than +0
  kMax,
  kAvg,        ///< the sum divided by the number of ranks before rounding; integers truncate
  kPreMulSum,  ///< the sum of each rank's input times that rank's scalar, in the accumulator
};
/// All of OpKind.
inline constexpr std::array<OpKind, 6> kAllOps = {OpKind::kSum, OpKind::kProd, OpKind::kMin,
                                                  OpKind::kMax, OpKind::kAvg,  OpKind::kPreMulSum};

/// One number, kept exactly: every value of every DataType has a Scalar. Scalars are equal if their
/// numbers are, whatever types they were made of.
class Scalar {
 public:
  constexpr Scalar() = default;  ///< 0
  // Conversions on purpose: a call may be given any number.
  // NOLINTBEGIN(google-explicit-constructor)
  constexpr Scalar(double value) : floating_(value) {}
  constexpr Scalar(float value) : Scalar(static_cast<double>(value)) {}
  template <class Integer>
  requires(std::is_integral_v<Integer> &&
           !std::is_same_v<Integer, bool>) constexpr Scalar(Integer value)
      : integer_(static_cast<std::uint64_t>(value)), kind_(kind_of(value)) {}
  // NOLINTEND(google-explicit-constructor)

  /// As a T, which is float, double or an integer: exact if T holds the number. Otherwise floating
  /// types round to nearest; integers truncate, then clamp to their range; and NaN becomes 0.
  template <class T>
  constexpr T to() const {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    if (kind_ == Kind::kFloating) return from_floating<T>(floating_);
    if (kind_ == Kind::kUnsigned) return from_integer<T>(integer_);
    return from_negative<T>(static_cast<std::int64_t>(integer_));
  }

  friend constexpr bool operator==(const Scalar& a, const Scalar& b) {
    if (a.kind_ == Kind::kFloating && b.kind_ == Kind::kFloating) return a.floating_ == b.floating_;
    if (a.kind_ == Kind::kFloating) return b.equals(a.floating_);
    if (b.kind_ == Kind::kFloating) return a.equals(b.floating_);
    return a.kind_ == b.kind_ && a.integer_ == b.integer_;
  }

 private:
  enum class Kind : std::uint8_t { kFloating, kUnsigned, kNegative };

  template <class Integer>
  static constexpr Kind kind_of(Integer value) {
    if constexpr (std::is_signed_v<Integer>) {
      if (value < 0) return Kind::kNegative;
    }
    return Kind::kUnsigned;
  }
  /// The power of two above all numbers of the type. It is exact, as the largest number may not be.
  template <class T>
  static constexpr double beyond() {
    return 2.0 * static_cast<double>(T{1} << (std::numeric_limits<T>::digits - 1));
  }
  template <class T>
  static constexpr T from_floating(double value) {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(value);
    } else {
      if (value != value) return 0;
      if (value >= beyond<T>()) return std::numeric_limits<T>::max();
      constexpr T kLeast = std::numeric_limits<T>::min();
      return value <= static_cast<double>(kLeast) ? kLeast : static_cast<T>(value);
    }
  }
  template <class T>
  static constexpr T from_integer(std::uint64_t value) {
    if constexpr (std::is_integral_v<T>) {
      constexpr T kMost = std::numeric_limits<T>::max();
      if (value > static_cast<std::uint64_t>(kMost)) return kMost;
    }
    return static_cast<T>(value);
  }
  template <class T>
  static constexpr T from_negative(std::int64_t value) {
    if constexpr (std::is_integral_v<T>) {
      constexpr T kLeast = std::numeric_limits<T>::min();
      if (value < static_cast<std::int64_t>(kLeast)) return kLeast;
    }
    return static_cast<T>(value);
  }
  /// Whether this integer is `value`.
  constexpr bool equals(double value) const {
    return kind_ == Kind::kUnsigned ? is_same(value, integer_)
                                    : is_same(value, static_cast<std::int64_t>(integer_));
  }
  template <class Integer>
  static constexpr bool is_same(double value, Integer integer) {
    return value == static_cast<double>(integer) && value < beyond<Integer>() &&
           static_cast<Integer>(value) == integer;
  }

  double floating_ = 0;
  std::uint64_t integer_ = 0;  ///< of integers; of negative ones, modulo 2^64
  Kind kind_ = Kind::kFloating;
};

/// A reduction, with its parameter.
struct ReduceOp {
  OpKind kind = OpKind::kSum;
  /// kPreMulSum: this rank's multiplier, converted to the accumulator's type by Scalar::to(). Not
  /// used if there is a `device_scalar`.
  Scalar scalar = 1.0;
  /// kPreMulSum: if not null, where this rank's multiplier is: one element of the call's dtype, in
  /// memory of the rank's device (host backend: any memory), outside the output. It is read when
  /// the stream reaches the operation, so a replay of a graph reads it again; it must not change
  /// before the operation has ended. Other ranks may give a `scalar`. With another kind, misaligned
  /// or overlapping the output: kInvalidArgument.
  const void* device_scalar = nullptr;

  static constexpr ReduceOp sum() { return {}; }
  static constexpr ReduceOp prod() { return {OpKind::kProd, 1.0}; }
  static constexpr ReduceOp min() { return {OpKind::kMin, 1.0}; }
  static constexpr ReduceOp max() { return {OpKind::kMax, 1.0}; }
  static constexpr ReduceOp avg() { return {OpKind::kAvg, 1.0}; }
  static constexpr ReduceOp pre_mul_sum(Scalar scalar) { return {OpKind::kPreMulSum, scalar}; }
  static constexpr ReduceOp pre_mul_sum_at(const void* device_scalar) {
    return {OpKind::kPreMulSum, 1.0, device_scalar};
  }

  friend bool operator==(const ReduceOp&, const ReduceOp&) = default;
};

/// "sum", "prod", "min", "max", "avg", "premulsum"
TUTTI_API std::string_view to_string(OpKind op);
/// The inverse of to_string(). Unknown names: kInvalidArgument.
TUTTI_API Result<OpKind> parse_op(std::string_view);

/// Where a communicator runs.
enum class Backend : std::uint8_t { kAuto, kHost, kCuda };
/// "auto", "host", "cuda"
TUTTI_API std::string_view to_string(Backend backend);
/// The inverse of to_string(). Unknown names: kInvalidArgument.
TUTTI_API Result<Backend> parse_backend(std::string_view);

}  // namespace tutti
