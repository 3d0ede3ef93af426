// Element types and their conversions, the same bits on the host and on the device. The narrow
// floating types are plain bit holders: arithmetic happens in the accumulator's type.
//
// Conversions are exact towards the wider type and round to nearest, ties to even, towards the
// narrower one. Subnormals are kept. Narrowing makes any NaN the type's one canonical NaN, so that
// the portable code and the hardware's instructions agree on all 2^32 floats. Results that are
// finite but too large become infinity in Half and Bfloat16, and the largest finite value in the
// two 8-bit types. An infinity stays one, except in Float8E4M3, which has none and takes +-448.
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

struct Half {
  std::uint16_t bits;
  friend bool operator==(Half, Half) = default;
};
struct Bfloat16 {
  std::uint16_t bits;
  friend bool operator==(Bfloat16, Bfloat16) = default;
};
struct Float8E4M3 {
  std::uint8_t bits;
  friend bool operator==(Float8E4M3, Float8E4M3) = default;
};
struct Float8E5M2 {
  std::uint8_t bits;
  friend bool operator==(Float8E5M2, Float8E5M2) = default;
};

// Integer code without branches or tables, which compilers vectorise. Its few floating additions
// come out the same in a process that flushes subnormals to zero.
namespace portable {

// Sign, exponent and mantissa below a float's: what the conversions need to know of a type.
// `kLargest` is where finite overflow ends (infinity's bits where the type has one to offer),
// `kInfinity` what an infinity becomes.
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

// `condition ? a : b` by a mask: compilers turn the conditional operator into a jump where one side
// holds a floating operation, and a loop with a jump is not vectorised.
TUTTI_HD std::int32_t select(bool condition, std::int32_t a, std::int32_t b) {
  return b ^ ((a ^ b) & -static_cast<std::int32_t>(condition));
}

// Sign bit of a float, moved to the top of a type of `width` bits.
TUTTI_HD std::int32_t sign_of(std::int32_t bits, int width) {
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(bits) >> 31) << (width - 1));
}

template <class Format>
TUTTI_HD std::int32_t encode(float value) {
  constexpr int kWidth = 1 + Format::kExponentBits + Format::kMantissaBits;
  constexpr int kBias = (1 << (Format::kExponentBits - 1)) - 1;
  constexpr int kShift = 23 - Format::kMantissaBits;
  constexpr std::int32_t kSmallestNormal = (127 - kBias + 1) << 23;
  // A float whose last mantissa bit has the weight of the type's smallest subnormal: adding it lets
  // the addition do the rounding.
  constexpr std::int32_t kMagic = (127 + 1 - kBias - Format::kMantissaBits + 23) << 23;

  const std::int32_t bits = bits_of(value);
  const std::int32_t magnitude = bits & kFloatMagnitude;
  // Clamped, so that the addition below neither overflows nor sees a NaN.
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

// `magnitude` is the encoding without its sign, none of infinity and NaN.
template <class Format>
TUTTI_HD std::int32_t decode_finite(std::int32_t magnitude) {
  constexpr int kBias = (1 << (Format::kExponentBits - 1)) - 1;
  constexpr int kShift = 23 - Format::kMantissaBits;
  constexpr std::int32_t kSmallestNormal = (127 - kBias + 1) << 23;
  const std::int32_t shifted = magnitude << kShift;
  const std::int32_t normal = shifted + ((127 - kBias) << 23);
  // Subnormals: give them the implicit one they lack, then take it away again.
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

// The upper half of a Half.
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

TUTTI_HD float to_float(Half value) {
#if defined(TUTTI_HARDWARE_CONVERSIONS)
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
#else
  return portable::to_float(value);
#endif
}

TUTTI_HD float to_float(Bfloat16 value) { return portable::to_float(value); }

TUTTI_HD float to_float(Float8E4M3 value) {
#if defined(TUTTI_HARDWARE_FLOAT8)
  std::uint32_t pair;  // two halves; the lower one is ours
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<std::uint16_t>(value.bits)));
  return to_float(Half{static_cast<std::uint16_t>(pair)});
#else
  return portable::to_float(value);
#endif
}

TUTTI_HD float to_float(Float8E5M2 value) {
  return to_float(Half{static_cast<std::uint16_t>(value.bits << 8)});
}

TUTTI_HD float to_float(float value) { return value; }

// T is Half, Bfloat16, Float8E4M3, Float8E5M2 or float.
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
      // The instruction saturates infinities, too; here they stay what they are.
      const std::int32_t word = portable::bits_of(value);
      const bool infinite = (word & portable::kFloatMagnitude) == portable::kFloatInfinity;
      return Float8E5M2{static_cast<std::uint8_t>(
          infinite ? portable::Float8E5M2Format::kInfinity | portable::sign_of(word, 8) : bits)};
    }
#endif
    return portable::from_float<T>(value);
  }
}

// What an element type computes in, and its name as a value.
template <class T>
struct ElementTraits;

namespace detail {
template <class Wide, DataType dtype>
struct Element {
  using Accumulator = Wide;
  static constexpr DataType kDataType = dtype;
};
}  // namespace detail

template <>
struct ElementTraits<double> : detail::Element<double, DataType::kFloat64> {};
template <>
struct ElementTraits<float> : detail::Element<float, DataType::kFloat32> {};
template <>
struct ElementTraits<Half> : detail::Element<float, DataType::kFloat16> {};
template <>
struct ElementTraits<Bfloat16> : detail::Element<float, DataType::kBfloat16> {};
template <>
struct ElementTraits<Float8E4M3> : detail::Element<float, DataType::kFloat8E4M3> {};
template <>
struct ElementTraits<Float8E5M2> : detail::Element<float, DataType::kFloat8E5M2> {};
template <>
struct ElementTraits<std::int8_t> : detail::Element<std::int8_t, DataType::kInt8> {};
template <>
struct ElementTraits<std::uint8_t> : detail::Element<std::uint8_t, DataType::kUint8> {};
template <>
struct ElementTraits<std::int32_t> : detail::Element<std::int32_t, DataType::kInt32> {};
template <>
struct ElementTraits<std::uint32_t> : detail::Element<std::uint32_t, DataType::kUint32> {};
template <>
struct ElementTraits<std::int64_t> : detail::Element<std::int64_t, DataType::kInt64> {};
template <>
struct ElementTraits<std::uint64_t> : detail::Element<std::uint64_t, DataType::kUint64> {};

template <class T>
using AccumulatorOf = typename ElementTraits<T>::Accumulator;

// To the accumulator's type and back; nothing happens where it is the element's own.
template <class T>
TUTTI_HD AccumulatorOf<T> widen(T value) {
  if constexpr (std::is_same_v<AccumulatorOf<T>, T>) {
    return value;
  } else {
    return to_float(value);
  }
}
template <class T>
TUTTI_HD T narrow(AccumulatorOf<T> value) {
  if constexpr (std::is_same_v<AccumulatorOf<T>, T>) {
    return value;
  } else {
    return from_float<T>(value);
  }
}

// Calls `f.template operator()<T>()` with the element type of `dtype` and returns its result:
// visit_data_type(dtype, [&]<class T>() { return sizeof(T); }). Host only. Requires a valid dtype.
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
