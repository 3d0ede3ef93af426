#include "bench/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tutti::cli {
namespace {

constexpr std::int64_t kMostMagnitude = 64;

// A floating-point type as IEEE 754 lays it out: sign, exponent, mantissa.
struct FloatLayout {
  int exponent_bits, mantissa_bits;
};

FloatLayout layout_of(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat64:
      return {11, 52};
    case DataType::kFloat32:
      return {8, 23};
    case DataType::kFloat16:
      return {5, 10};
    case DataType::kBfloat16:
      return {8, 7};
    case DataType::kFloat8E4M3:
      return {4, 3};
    default:
      return {5, 2};
  }
}

bool is_unsigned(DataType dtype) {
  return dtype == DataType::kUint8 || dtype == DataType::kUint32 || dtype == DataType::kUint64;
}

// Whole numbers up to this, and their partial sums, are exact. For 8-bit integers less than the
// type holds, so that no result is the poison.
std::int64_t whole_numbers(DataType dtype) {
  if (dtype == DataType::kInt8) return 64;
  if (dtype == DataType::kUint8) return 127;
  if (!is_floating(dtype)) return std::int64_t{1} << 20;
  return std::int64_t{1} << std::min(layout_of(dtype).mantissa_bits + 1, 20);
}

// `value` is zero, or normal and exact in the type.
std::uint64_t encode_float(double value, FloatLayout layout) {
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  const int bias = (1 << (layout.exponent_bits - 1)) - 1;
  const auto mantissa =
      static_cast<std::uint64_t>(std::ldexp(fraction * 2 - 1, layout.mantissa_bits));
  const auto biased = static_cast<std::uint64_t>(std::int64_t{exponent} - 1 + bias);
  const std::uint64_t sign = value < 0 ? 1 : 0;
  return (sign << (layout.exponent_bits + layout.mantissa_bits)) |
         (biased << layout.mantissa_bits) | mantissa;
}

// The low bytes of `bits`, as a little-endian machine stores them.
void store(std::byte* to, std::uint64_t bits, std::size_t element_bytes) {
  std::memcpy(to, &bits, element_bytes);
}

std::uint64_t mix(std::uint64_t key) {  // splitmix64
  key += 0x9E3779B97F4A7C15u;
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9u;
  key = (key ^ (key >> 27)) * 0x94D049BB133111EBu;
  return key ^ (key >> 31);
}

std::uint64_t random_bits(int rank, std::size_t index, std::uint32_t iteration) {
  return mix(index ^ (static_cast<std::uint64_t>(iteration) << 24) ^
             (static_cast<std::uint64_t>(rank + 1) << 56));
}

int odd_part(int ranks) {
  while (ranks % 2 == 0) ranks /= 2;
  return ranks;
}

// Sums that grow by the number of ranks at each application stay exact only as long as that is a
// shift of the exponent, and the exponent has room.
bool growth_is_exact(const ExactInputs::Shape& shape) {
  if (!is_floating(shape.dtype) || shape.ranks == 1 || shape.applications == 1) return true;
  const bool wide_exponent = layout_of(shape.dtype).exponent_bits >= 8;
  constexpr double kMostExponent = 110;
  return shape.op == OpKind::kSum && wide_exponent && odd_part(shape.ranks) == 1 &&
         std::log2(shape.ranks) * (shape.applications - 1) < kMostExponent;
}

}  // namespace

ExactInputs::ExactInputs(const Shape& shape) : shape_(shape), budget_(whole_numbers(shape.dtype)) {
  const bool adds = shape.op == OpKind::kSum || shape.op == OpKind::kPreMulSum;
  cancels_ = adds && !growth_is_exact(shape);
  if (shape.op == OpKind::kPreMulSum) budget_ /= 2;
  if (shape.op == OpKind::kAvg) {
    budget_ /= is_floating(shape.dtype) ? odd_part(shape.ranks) : shape.ranks;
  }
  balanced_ = shape.op == OpKind::kAvg && budget_ == 0;
  active_ = static_cast<int>(std::min<std::int64_t>(budget_, shape.ranks));
  magnitude_ = std::clamp<std::int64_t>(budget_ / shape.ranks, 1, kMostMagnitude);
}

double ExactInputs::scalar(int rank) const {
  return shape_.op == OpKind::kPreMulSum && (rank / 2) % 2 == 1 ? 2.0 : 1.0;
}

ReduceOp ExactInputs::op(int rank) const { return {shape_.op, scalar(rank)}; }

double ExactInputs::sum_value(int rank, std::size_t index, std::uint32_t iteration) const {
  const std::int64_t span = is_unsigned(shape_.dtype) ? magnitude_ + 1 : 2 * magnitude_ + 1;
  const std::int64_t lowest = is_unsigned(shape_.dtype) ? 0 : -magnitude_;
  if (cancels_) {  // ranks 2k and 2k+1 add up to zero; a last one without a partner gives zero
    if ((rank | 1) >= shape_.ranks) return 0;
    const auto of_pair = random_bits(rank / 2, index, iteration);
    const auto value = static_cast<double>(of_pair % static_cast<std::uint64_t>(span)) +
                       static_cast<double>(lowest);
    return rank % 2 == 0 || value == 0 ? value : -value;
  }
  const auto first = random_bits(-1, index, iteration) % static_cast<std::uint64_t>(shape_.ranks);
  if ((static_cast<int>(first) + rank) % shape_.ranks >= active_) return 0;
  const auto random = random_bits(rank, index, iteration) % static_cast<std::uint64_t>(span);
  return static_cast<double>(static_cast<std::int64_t>(random) + lowest);
}

double ExactInputs::product_value(int rank, std::size_t index, std::uint32_t iteration) const {
  const std::uint64_t random = random_bits(rank, index, iteration);
  if (!is_floating(shape_.dtype)) {  // odd: a wrapped product never becomes zero
    const double odd = 1 + 2 * static_cast<double>(random % 4);
    return is_unsigned(shape_.dtype) || random % 8 < 4 ? odd : -odd;
  }
  const double sign = random % 2 == 0 ? 1 : -1;
  constexpr int kFactors = 4;  // ranks whose factor is not 1, so that 8-bit exponents have room
  const auto first = random_bits(-1, index, iteration) % static_cast<std::uint64_t>(shape_.ranks);
  const bool active = (static_cast<int>(first) + rank) % shape_.ranks < kFactors;
  if (shape_.applications > 1 || !active) return sign;
  return sign * (random % 4 < 2 ? 2.0 : 0.5);
}

double ExactInputs::value(int rank, std::size_t index, std::uint32_t iteration) const {
  switch (shape_.op) {
    case OpKind::kProd:
      return product_value(rank, index, iteration);
    case OpKind::kMin:
    case OpKind::kMax: {
      const std::int64_t bound = std::min(whole_numbers(shape_.dtype), kMostMagnitude);
      const std::uint64_t random = random_bits(rank, index, iteration);
      const auto magnitude = static_cast<double>(random % static_cast<std::uint64_t>(bound));
      const bool negative = !is_unsigned(shape_.dtype) && (random >> 32) % 2 == 1;
      return negative && magnitude != 0 ? -magnitude : magnitude;
    }
    case OpKind::kAvg:
      if (balanced_) {
        if ((rank | 1) >= shape_.ranks) return 1;
        const bool apart = random_bits(rank / 2, index, iteration) % 2 == 1;
        return apart ? (rank % 2 == 0 ? 2 : 0) : 1;
      }
      return shape_.ranks * sum_value(rank, index, iteration);
    default:
      return sum_value(rank, index, iteration);
  }
}

// T is double for floating types, and std::uint64_t, which wraps as every integer does, for others.
template <class T>
T ExactInputs::reduce(std::size_t index, std::uint32_t iteration) const {
  const auto of = [&](int rank) {
    const double whole = value(rank, index, iteration) * scalar(rank);
    return is_floating(shape_.dtype) ? static_cast<T>(whole)
                                     : static_cast<T>(static_cast<std::int64_t>(whole));
  };
  const auto less = [&](T a, T b) {
    if constexpr (std::is_same_v<T, double>) return a < b;
    return static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
  };
  T result = of(0);
  for (int rank = 1; rank < shape_.ranks; ++rank) {
    const T next = of(rank);
    switch (shape_.op) {
      case OpKind::kProd:
        result *= next;
        break;
      case OpKind::kMin:
        result = less(next, result) ? next : result;
        break;
      case OpKind::kMax:
        result = less(result, next) ? next : result;
        break;
      default:
        result += next;
        break;
    }
  }
  if (shape_.op != OpKind::kAvg) return result;
  if constexpr (std::is_same_v<T, double>) return result / shape_.ranks;
  const std::int64_t truncated = static_cast<std::int64_t>(result) / shape_.ranks;
  return static_cast<T>(truncated);
}

// What becomes of a value that every rank holds.
template <class T>
T ExactInputs::reduce_again(T value) const {
  T weight = 0;
  for (int rank = 0; rank < shape_.ranks; ++rank) weight += static_cast<T>(scalar(rank));
  if (shape_.op == OpKind::kSum || shape_.op == OpKind::kPreMulSum) return value * weight;
  if (shape_.op != OpKind::kProd) return value;
  T product = value;
  for (int rank = 1; rank < shape_.ranks; ++rank) product *= value;
  return product;
}

Bytes ExactInputs::input(int rank, std::uint32_t iteration) const {
  const std::size_t element = size_of(shape_.dtype);
  Bytes period(kPeriod * element);
  for (std::size_t i = 0; i < kPeriod; ++i) {
    const double number = value(rank, i, iteration);
    const std::uint64_t bits = is_floating(shape_.dtype)
                                   ? encode_float(number, layout_of(shape_.dtype))
                                   : static_cast<std::uint64_t>(static_cast<std::int64_t>(number));
    store(&period[i * element], bits, element);
  }
  return period;
}

Bytes ExactInputs::expected(std::uint32_t iteration) const {
  const std::size_t element = size_of(shape_.dtype);
  Bytes period(kPeriod * element);
  for (std::size_t i = 0; i < kPeriod; ++i) {
    std::uint64_t bits = 0;
    if (is_floating(shape_.dtype)) {
      auto result = reduce<double>(i, iteration);
      for (int k = 1; k < shape_.applications; ++k) result = reduce_again(result);
      bits = encode_float(result, layout_of(shape_.dtype));
    } else {
      bits = reduce<std::uint64_t>(i, iteration);
      for (int k = 1; k < shape_.applications; ++k) bits = reduce_again(bits);
    }
    store(&period[i * element], bits, element);
  }
  return period;
}

void tile(std::span<std::byte> out, ByteView period) {
  for (std::size_t at = 0; at < out.size(); at += period.size()) {
    std::memcpy(&out[at], period.data(), std::min(period.size(), out.size() - at));
  }
}

Mismatches count_mismatches(ByteView got, ByteView period, std::size_t element_bytes) {
  Mismatches found;
  for (std::size_t at = 0; at < got.size(); at += period.size()) {
    const std::size_t bytes = std::min(period.size(), got.size() - at);
    if (std::memcmp(&got[at], period.data(), bytes) == 0) continue;
    for (std::size_t k = 0; k < bytes; k += element_bytes) {
      if (std::memcmp(&got[at + k], &period[k], element_bytes) == 0) continue;
      if (found.count++ == 0) found.first = (at + k) / element_bytes;
    }
  }
  return found;
}

}  // namespace tutti::cli
