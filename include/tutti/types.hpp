/// \file
/// Element types, reductions, backends and streams.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

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

/// A reduction, with its parameter.
struct ReduceOp {
  OpKind kind = OpKind::kSum;
  /// kPreMulSum: this rank's multiplier, converted to the accumulator's type. For integers it is
  /// truncated and clamped to their range; NaN becomes 0.
  double scalar = 1.0;

  static constexpr ReduceOp sum() { return {}; }
  static constexpr ReduceOp prod() { return {OpKind::kProd, 1.0}; }
  static constexpr ReduceOp min() { return {OpKind::kMin, 1.0}; }
  static constexpr ReduceOp max() { return {OpKind::kMax, 1.0}; }
  static constexpr ReduceOp avg() { return {OpKind::kAvg, 1.0}; }
  static constexpr ReduceOp pre_mul_sum(double scalar) { return {OpKind::kPreMulSum, scalar}; }

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
