#include "support/inputs.hpp"

#include <bit>
#include <type_traits>

#include "tutti/device/scalar.hpp"

namespace tutti::test {
namespace {

std::uint64_t mix(std::uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

// The bits of a floating type, from the most significant: sign, exponent, mantissa.
template <class T>
struct Format;
template <>
struct Format<double> {
  static constexpr int kExponent = 11, kMantissa = 52;
  using Bits = std::uint64_t;
};
template <>
struct Format<float> {
  static constexpr int kExponent = 8, kMantissa = 23;
  using Bits = std::uint32_t;
};
template <>
struct Format<Half> {
  static constexpr int kExponent = 5, kMantissa = 10;
  using Bits = std::uint16_t;
};
template <>
struct Format<Bfloat16> {
  static constexpr int kExponent = 8, kMantissa = 7;
  using Bits = std::uint16_t;
};
template <>
struct Format<Float8E4M3> {
  static constexpr int kExponent = 4, kMantissa = 3;
  using Bits = std::uint8_t;
};
template <>
struct Format<Float8E5M2> {
  static constexpr int kExponent = 5, kMantissa = 2;
  using Bits = std::uint8_t;
};

template <class T>
T from_parts(std::uint64_t sign, std::uint64_t exponent, std::uint64_t mantissa) {
  using F = Format<T>;
  const std::uint64_t bits = sign << (F::kExponent + F::kMantissa) | exponent << F::kMantissa |
                             (mantissa & ((std::uint64_t{1} << F::kMantissa) - 1));
  return std::bit_cast<T>(static_cast<typename F::Bits>(bits));
}

// Sums of up to eight such integers have an exact place in the type.
template <class T>
constexpr std::int64_t exact_magnitude() {
  constexpr int kBits = Format<T>::kMantissa + 1 - 3;
  return std::int64_t{1} << (kBits < 16 ? kBits : 16);
}

template <class T>
T from_integer(std::int64_t value) {
  if constexpr (std::is_same_v<T, double>) {
    return static_cast<double>(value);
  } else {
    return from_float<T>(static_cast<float>(value));
  }
}

// Random integers of at most `magnitude`, at every `period`-th rank; zero elsewhere.
template <class T>
T sparse_integer(std::uint64_t at, std::uint64_t mine, int rank, std::uint64_t period,
                 std::int64_t magnitude) {
  if ((at + static_cast<std::uint64_t>(rank)) % period != 0) return from_integer<T>(0);
  const auto span = static_cast<std::uint64_t>(2 * magnitude + 1);
  return from_integer<T>(static_cast<std::int64_t>(mine % span) - magnitude);
}

// `at` is random per index, `mine` per index and rank.
template <class T>
T exact(OpKind op, std::uint64_t at, std::uint64_t mine, int rank) {
  constexpr std::int64_t kMagnitude = exact_magnitude<T>();
  constexpr std::uint64_t kBias = (1u << (Format<T>::kExponent - 1)) - 1;
  switch (op) {
    case OpKind::kSum:
      return sparse_integer<T>(at, mine, rank, 2, kMagnitude);
    case OpKind::kPreMulSum:  // at most four, each times 1 or 2
      return sparse_integer<T>(at, mine, rank, 4, kMagnitude);
    case OpKind::kProd: {
      // Factors of 1/2, 1 and 2 that cancel from one rank to the next.
      const auto pair = mix(at + static_cast<std::uint64_t>(rank / 2)) % 3;
      const std::uint64_t exponent = rank % 2 == 0 ? kBias - 1 + pair : kBias + 1 - pair;
      return from_parts<T>(mine & 1u, exponent, 0);
    }
    case OpKind::kAvg:  // the same everywhere: the average of n times x is x
      return from_parts<T>(at & 1u, kBias + (at >> 1) % 3, 0);
    case OpKind::kMin:
    case OpKind::kMax:
      break;
  }
  const auto span = static_cast<std::uint64_t>(2 * kMagnitude + 1);
  const auto value = static_cast<std::int64_t>(mine % span) - kMagnitude;
  return from_integer<T>(value);
}

template <class T>
T random_value(OpKind op, std::uint64_t mine) {
  constexpr std::uint64_t kBias = (1u << (Format<T>::kExponent - 1)) - 1;
  // Products stay near one; sums see operands that differ by up to 2^4.
  const std::uint64_t exponent =
      op == OpKind::kProd ? kBias - (mine >> 60) % 2 : kBias - 2 + (mine >> 58) % 5;
  return from_parts<T>(mine >> 63, exponent, mine);
}

// `at` is random per index, `mine` per index and rank.
template <class T>
T special(OpKind op, std::uint64_t at, std::uint64_t mine) {
  constexpr std::uint64_t kTop = (1u << Format<T>::kExponent) - 1;  // infinity's exponent
  constexpr bool kHasInfinity = !std::is_same_v<T, Float8E4M3>;
  constexpr std::uint64_t kFull = ~std::uint64_t{0};
  const std::uint64_t sign = mine >> 63, pick = mix(mine) % 32;
  if (at % 16 == 0) return from_parts<T>(1, 0, 0);  // -0.0 on every rank
  switch (pick) {
    case 0:
      return from_parts<T>(sign, kTop, kFull);  // NaN
    case 1:
      return kHasInfinity ? from_parts<T>(sign, kTop, 0) : from_parts<T>(sign, kTop, kFull - 1);
    case 2:  // the largest finite value
      return kHasInfinity ? from_parts<T>(sign, kTop - 1, kFull)
                          : from_parts<T>(sign, kTop, kFull - 1);
    case 3:
      return from_parts<T>(sign, 1, 0);  // the smallest normal value
    case 4:
    case 5:
      return from_parts<T>(sign, 0, mine);  // subnormal
    case 6:                                 // a signalling NaN, where the type has them
      return kHasInfinity ? from_parts<T>(sign, kTop, 1) : from_parts<T>(sign, kTop, kFull);
    default:
      return pick < 16 ? from_parts<T>(sign, 0, 0) : random_value<T>(op, mine);
  }
}

template <class T>
T element(const InputSpec& spec, int rank, std::uint64_t at, std::uint64_t mine) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(mine);  // wraps, and wrapping arithmetic is exact in any order
  } else {
    switch (spec.kind) {
      case InputKind::kExact:
        return exact<T>(spec.op, at, mine, rank);
      case InputKind::kRandom:
        return random_value<T>(spec.op, mine);
      case InputKind::kSpecial:
        break;
    }
    return special<T>(spec.op, at, mine);
  }
}

}  // namespace

std::string_view to_string(InputKind kind) {
  switch (kind) {
    case InputKind::kExact:
      return "exact";
    case InputKind::kRandom:
      return "random";
    case InputKind::kSpecial:
      break;
  }
  return "special";
}

Bytes make_input(const InputSpec& spec, int rank, std::size_t count) {
  return visit_data_type(spec.dtype, [&]<class T>() {
    Bytes bytes(count * sizeof(T));
    const std::uint64_t start = mix(spec.seed);
    const std::uint64_t own = mix(start + static_cast<std::uint64_t>(rank) + 1);
    for (std::size_t i = 0; i < count; ++i) {
      const T value = element<T>(spec, rank, mix(start ^ i), mix(own ^ mix(i)));
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    return bytes;
  });
}

Scalar scalar_of(const InputSpec& spec, int rank) {
  if (spec.op != OpKind::kPreMulSum) return 1.0;
  if (spec.dtype == DataType::kInt64) return (std::int64_t{1} << 62) + 1 + rank;
  if (spec.dtype == DataType::kUint64) return ~static_cast<std::uint64_t>(rank);
  if (!is_floating(spec.dtype)) return 1.0 + rank;
  if (spec.kind == InputKind::kExact) return rank % 2 == 0 ? 1.0 : 2.0;
  return 0.75 + 0.1 * rank;  // rounds when it becomes a float
}

}  // namespace tutti::test
