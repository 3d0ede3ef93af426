#include "bench/numbers.hpp"

#include <cmath>
#include <cstring>

#include "tutti/device/scalar.hpp"

namespace tutti::cli {
namespace {

float random_number(std::uint64_t seed, std::size_t index) {
  constexpr int kBits = 24;  // a float's
  const auto bits = static_cast<std::int32_t>(scrambled(scrambled(seed) ^ index) >> (64 - kBits));
  return std::ldexp(static_cast<float>(bits - (1 << (kBits - 1))), 1 - kBits);
}

// `value` as it is in the type T, there and back.
template <class T>
float store(std::byte* to, float value) {
  const T narrow = from_float<T>(value);
  std::memcpy(to, &narrow, sizeof narrow);
  return to_float(narrow);
}

float store(DataType dtype, std::byte* to, float value) {
  if (dtype == DataType::kFloat16) return store<Half>(to, value);
  if (dtype == DataType::kBfloat16) return store<Bfloat16>(to, value);
  std::memcpy(to, &value, sizeof value);
  return value;
}

}  // namespace

std::uint64_t scrambled(std::uint64_t key) {
  key += 0x9E3779B97F4A7C15u;
  key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9u;
  key = (key ^ (key >> 27)) * 0x94D049BB133111EBu;
  return key ^ (key >> 31);
}

Numbers::Numbers(DataType dtype, std::uint64_t seed)
    : values_(kPeriod), period_(kPeriod * size_of(dtype)) {
  for (std::size_t i = 0; i < kPeriod; ++i) {
    values_[i] = store(dtype, &period_[i * size_of(dtype)], random_number(seed, i));
  }
}

double number_of(DataType dtype, ByteView bytes) {
  if (dtype == DataType::kFloat16) return to_float(from_bytes<Half>(bytes));
  if (dtype == DataType::kBfloat16) return to_float(from_bytes<Bfloat16>(bytes));
  return from_bytes<float>(bytes);
}

double rounding_of(DataType dtype) {
  const int bits = dtype == DataType::kBfloat16 ? 8 : dtype == DataType::kFloat16 ? 11 : 24;
  return std::ldexp(1, -bits);
}

}  // namespace tutti::cli
