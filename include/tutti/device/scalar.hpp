/// \file
/// Narrow floating-point types and their conversions, with the same bits on the host and on the
/// device. The types only hold bits; arithmetic happens in the accumulator's type.
///
/// Widening is exact. Narrowing rounds to nearest, ties to even, and keeps subnormals. It turns
/// every NaN into the type's canonical NaN, so that the portable code and the hardware's
/// instructions agree on all 2^32 floats. A finite value that is too large becomes infinity in Half
/// and Bfloat16, and the largest finite value in the two 8-bit types. Infinity stays infinity,
/// except in Float8E4M3, which has none and uses +-448.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tutti/types.hpp"

#if defined(__CUDACC__)
#define TUTTI_HD __host__ __device__ inline
#else
#define TUTTI_HD inline
#endif

namespace tutti {

/// IEEE binary16; the bits of CUDA's __half.
struct Half {
  std::uint16_t bits;
  friend bool operator==(Half, Half) = default;
};
/// bfloat16; the bits of CUDA's __nv_bfloat16.
struct Bfloat16 {
  std::uint16_t bits;
  friend bool operator==(Bfloat16, Bfloat16) = default;
};
/// OCP fp8 E4M3; the bits of CUDA's __nv_fp8_e4m3.
struct Float8E4M3 {
  std::uint8_t bits;
  friend bool operator==(Float8E4M3, Float8E4M3) = default;
};
/// OCP fp8 E5M2; the bits of CUDA's __nv_fp8_e5m2.
struct Float8E5M2 {
  std::uint8_t bits;
  friend bool operator==(Float8E5M2, Float8E5M2) = default;
};

/// Conversions without special instructions: integer code without branches or tables, which
/// compilers vectorise. Its floating-point additions give the same result if the process flushes
/// subnormals to zero.
namespace portable {

// What encode() and decode_finite() need to know of a type. `kLargest`: the bits that a finite
// value becomes if it is too large. `kInfinity`: the bits that infinity becomes.
struct HalfFormat {
  static constexpr int kExponentBits = 5, kMantissaBits = 10;
  static constexpr std::int32_t kLargest = 0x7c00, kInfinity = 0x7c00, kNan = 0x7fff;
};
struct Float8E4M3Format {
  static constexpr int kExponentBits = 4, kMantissaBits = 3;
  static constexpr std::int32_t kLargest = 0x7e, kInfinity = 0x7e, kNan = 0x7f;
};
struct Float8E5M2Format {
  static constexpr int kExponentBits = 5, kMantissaBits = 2;
  static constexpr std::int32_t kLargest = 0x7b, kInfinity = 0x7c, kNan = 0x7f;
};

inline constexpr std::int32_t kFloatInfinity = 0x7f800000;
inline constexpr std::int32_t kFloatMagnitude = 0x7fffffff;

TUTTI_HD std::int32_t bits_of(float value) { return __builtin_bit_cast(std::int32_t, value); }
TUTTI_HD float float_of(std::int32_t bits) { return __builtin_bit_cast(float, bits); }

// `condition ? a : b` by a mask. If one side has a floating-point operation, compilers turn the
// conditional operator into a jump, and do not vectorise a loop with a jump.
TUTTI_HD std::int32_t select(bool condition, std::int32_t a, std::int32_t b) {
  return b ^ ((a ^ b) & -static_cast<std::int32_t>(condition));
}

// The sign bit of a float, moved to the top of a type of `width` bits.
TUTTI_HD std::int32_t sign_of(std::int32_t bits, int width) {
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(bits) >> 31) << (width - 1));
}

// The bits of `value` in `Format`.
template <class Format>
TUTTI_HD std::int32_t encode(float value) {
  constexpr int kWidth = 1 + Format::kExponentBits + Format::kMantissaBits;
  constexpr int kBias = (1 << (Format::kExponentBits - 1)) - 1;
  constexpr int kShift = 23 - Format::kMantissaBits;
  constexpr std::int32_t kSmallestNormal = (127 - kBias + 1) << 23;
  // The last mantissa bit of this float has the weight of the type's smallest subnormal, so adding
  // it rounds.
  constexpr std::int32_t kMagic = (127 + 1 - kBias - Format::kMantissaBits + 23) << 23;

  const std::int32_t bits = bits_of(value);
  const std::int32_t magnitude = bits & kFloatMagnitude;
  // Clamped: the addition below must not overflow or see a NaN.
  const std::int32_t small = select(magnitude < kSmallestNormal, magnitude, 0);
  const std::int32_t subnormal = bits_of(float_of(small) + float_of(kMagic)) - kMagic;
  const std::int32_t odd = (magnitude >> kShift) & 1;
  const std::int32_t half_minus_one = (1 << (kShift - 1)) - 1;
  const std::int32_t normal = (magnitude - ((127 - kBias) << 23) + half_minus_one + odd) >> kShift;

  std::int32_t result = select(magnitude < kSmallestNormal, subnormal, normal);
  result = select(result < Format::kLargest, result, Format::kLargest);
  result = select(magnitude == kFloatInfinity, Format::kInfinity, result);
  result |= sign_of(bits, kWidth);
  return select(magnitude > kFloatInfinity, Format::kNan, result);
}

// The bits of a float. `magnitude` has no sign, and is neither infinity nor NaN.
template <class Format>
TUTTI_HD std::int32_t decode_finite(std::int32_t magnitude) {
  constexpr int kBias = (1 << (Format::kExponentBits - 1)) - 1;
  constexpr int kShift = 23 - Format::kMantissaBits;
  constexpr std::int32_t kSmallestNormal = (127 - kBias + 1) << 23;
  const std::int32_t shifted = magnitude << kShift;
  const std::int32_t normal = shifted + ((127 - kBias) << 23);
  // Subnormals have no implicit one: add it, and subtract it again.
  const float subnormal = float_of(shifted + kSmallestNormal) - float_of(kSmallestNormal);
  return select(magnitude < (1 << Format::kMantissaBits), bits_of(subnormal), normal);
}

TUTTI_HD float to_float(Half value) {
  const std::int32_t magnitude = value.bits & 0x7fff;
  std::int32_t result = decode_finite<HalfFormat>(magnitude);
  result = select(magnitude >= 0x7c00, kFloatInfinity | ((magnitude & 0x3ff) << 13), result);
  return float_of(result | static_cast<std::int32_t>((value.bits & 0x8000u) << 16));
}

TUTTI_HD float to_float(Bfloat16 value) {
  return float_of(static_cast<std::int32_t>(static_cast<std::uint32_t>(value.bits) << 16));
}

TUTTI_HD float to_float(Float8E4M3 value) {
  const std::int32_t magnitude = value.bits & 0x7f;
  std::int32_t result = decode_finite<Float8E4M3Format>(magnitude);
  result = select(magnitude == 0x7f, kFloatMagnitude, result);
  return float_of(result | static_cast<std::int32_t>((value.bits & 0x80u) << 24));
}

// The bits are the upper byte of a Half.
TUTTI_HD float to_float(Float8E5M2 value) {
  return to_float(Half{static_cast<std::uint16_t>(value.bits << 8)});
}

template <class T>
TUTTI_HD T from_float(float value) {
  if constexpr (std::is_same_v<T, Half>) {
    return Half{static_cast<std::uint16_t>(encode<HalfFormat>(value))};
  } else if constexpr (std::is_same_v<T, Float8E4M3>) {
    return Float8E4M3{static_cast<std::uint8_t>(encode<Float8E4M3Format>(value))};
  } else if constexpr (std::is_same_v<T, Float8E5M2>) {
    return Float8E5M2{static_cast<std::uint8_t>(encode<Float8E5M2Format>(value))};
  } else {
    static_assert(std::is_same_v<T, Bfloat16>, "not an element type narrower than float");
    const auto bits = __builtin_bit_cast(std::uint32_t, value);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return Bfloat16{static_cast<std::uint16_t>(nan ? 0x7fffu : rounded)};
  }
}

}  // namespace portable

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define TUTTI_HARDWARE_CONVERSIONS 1
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define TUTTI_HARDWARE_FLOAT8 1
#endif

/// Exact.
TUTTI_HD float to_float(Half value) {
#if defined(TUTTI_HARDWARE_CONVERSIONS)
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
#else
  return portable::to_float(value);
#endif
}

/// Exact.
TUTTI_HD float to_float(Bfloat16 value) { return portable::to_float(value); }

/// Exact.
TUTTI_HD float to_float(Float8E4M3 value) {
#if defined(TUTTI_HARDWARE_FLOAT8)
  std::uint32_t pair;  // two Half values; the lower one is used
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<std::uint16_t>(value.bits)));
  return to_float(Half{static_cast<std::uint16_t>(pair)});
#else
  return portable::to_float(value);
#endif
}

/// Exact.
TUTTI_HD float to_float(Float8E5M2 value) {
  return to_float(Half{static_cast<std::uint16_t>(value.bits << 8)});
}

/// `value`.
TUTTI_HD float to_float(float value) { return value; }

/// Rounds as described on top. T is Half, Bfloat16, Float8E4M3, Float8E5M2 or float.
template <class T>
TUTTI_HD T from_float(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
#if defined(TUTTI_HARDWARE_CONVERSIONS)
    std::uint16_t bits;
    if constexpr (std::is_same_v<T, Half>) {
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
      return Half{bits};
    } else if constexpr (std::is_same_v<T, Bfloat16>) {
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
      return Bfloat16{bits};
    }
#endif
#if defined(TUTTI_HARDWARE_FLOAT8)
    if constexpr (std::is_same_v<T, Float8E4M3>) {
      asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(0.0f), "f"(value));
      return Float8E4M3{static_cast<std::uint8_t>(bits)};
    } else if constexpr (std::is_same_v<T, Float8E5M2>) {
      asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(0.0f), "f"(value));
      // The instruction saturates infinity too; here it stays infinity.
      const std::int32_t word = portable::bits_of(value);
      const bool infinite = (word & portable::kFloatMagnitude) == portable::kFloatInfinity;
      return Float8E5M2{static_cast<std::uint8_t>(
          infinite ? portable::Float8E5M2Format::kInfinity | portable::sign_of(word, 8) : bits)};
    }
#endif
    return portable::from_float<T>(value);
  }
}

/// The type that an element type computes in, and its DataType.
template <class T>
struct ElementTraits;

namespace detail {
template <class T, class Wide>
struct Element {
  using Accumulator = Wide;
  static constexpr DataType kDataType = DataTypeOf<T>::value;
};
}  // namespace detail

template <>
struct ElementTraits<double> : detail::Element<double, double> {};
template <>
struct ElementTraits<float> : detail::Element<float, float> {};
template <>
struct ElementTraits<Half> : detail::Element<Half, float> {};
template <>
struct ElementTraits<Bfloat16> : detail::Element<Bfloat16, float> {};
template <>
struct ElementTraits<Float8E4M3> : detail::Element<Float8E4M3, float> {};
template <>
struct ElementTraits<Float8E5M2> : detail::Element<Float8E5M2, float> {};
template <>
struct ElementTraits<std::int8_t> : detail::Element<std::int8_t, std::int8_t> {};
template <>
struct ElementTraits<std::uint8_t> : detail::Element<std::uint8_t, std::uint8_t> {};
template <>
struct ElementTraits<std::int32_t> : detail::Element<std::int32_t, std::int32_t> {};
template <>
struct ElementTraits<std::uint32_t> : detail::Element<std::uint32_t, std::uint32_t> {};
template <>
struct ElementTraits<std::int64_t> : detail::Element<std::int64_t, std::int64_t> {};
template <>
struct ElementTraits<std::uint64_t> : detail::Element<std::uint64_t, std::uint64_t> {};

/// The type that T computes in.
template <class T>
using AccumulatorOf = typename ElementTraits<T>::Accumulator;

/// To the accumulator's type, which may be T itself.
template <class T>
TUTTI_HD AccumulatorOf<T> widen(T value) {
  if constexpr (std::is_same_v<AccumulatorOf<T>, T>) {
    return value;
  } else {
    return to_float(value);
  }
}
/// From the accumulator's type, which may be T itself.
template <class T>
TUTTI_HD T narrow(AccumulatorOf<T> value) {
  if constexpr (std::is_same_v<AccumulatorOf<T>, T>) {
    return value;
  } else {
    return from_float<T>(value);
  }
}

/// Calls `f.template operator()<T>()` with the element type of `dtype` and returns its result, as
/// in `visit_data_type(dtype, [&]<class T>() { return sizeof(T); })`. Host only. Requires a valid
/// dtype.
template <class F>
decltype(auto) visit_data_type(DataType dtype, F&& f) {
  switch (dtype) {
    case DataType::kFloat64:
      return f.template operator()<double>();
    case DataType::kFloat32:
      return f.template operator()<float>();
    case DataType::kFloat16:
      return f.template operator()<Half>();
    case DataType::kBfloat16:
      return f.template operator()<Bfloat16>();
    case DataType::kFloat8E4M3:
      return f.template operator()<Float8E4M3>();
    case DataType::kFloat8E5M2:
      return f.template operator()<Float8E5M2>();
    case DataType::kInt8:
      return f.template operator()<std::int8_t>();
    case DataType::kUint8:
      return f.template operator()<std::uint8_t>();
    case DataType::kInt32:
      return f.template operator()<std::int32_t>();
    case DataType::kUint32:
      return f.template operator()<std::uint32_t>();
    case DataType::kInt64:
      return f.template operator()<std::int64_t>();
    case DataType::kUint64:
      break;
  }
  return f.template operator()<std::uint64_t>();
}

}  // namespace tutti

#undef TUTTI_HARDWARE_CONVERSIONS
#undef TUTTI_HARDWARE_FLOAT8
