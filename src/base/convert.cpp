#include "base/convert.hpp"

#include <cmath>
#include <cstring>

#include "tutti/device/scalar.hpp"

namespace tutti {
namespace {

// Rounds to odd: a second rounding, to a type of at most 22 mantissa bits, then gives what a single
// one would have given.
float to_odd_float(double value) {
  const float nearest = static_cast<float>(value);
  if (std::isnan(value) || std::isinf(value) || static_cast<double>(nearest) == value) {
    return nearest;
  }
  const bool away = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  const float truncated = away ? std::nextafterf(nearest, 0.0f) : nearest;
  return portable::float_of(portable::bits_of(truncated) | 1);
}

template <class T>
T to_element(Scalar value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return value.to<T>();
  } else {
    return from_float<T>(to_odd_float(value.to<double>()));
  }
}

}  // namespace

void store_element(DataType dtype, void* at, Scalar value) {
  visit_data_type(dtype, [&]<class T>() {
    const T element = to_element<T>(value);
    std::memcpy(at, &element, sizeof element);
  });
}

Scalar load_scalar(DataType dtype, const void* at) {
  return visit_data_type(dtype, [&]<class T>() -> Scalar {
    T element;
    std::memcpy(&element, at, sizeof element);
    return widen(element);
  });
}

double load_element(DataType dtype, const void* at) { return load_scalar(dtype, at).to<double>(); }

std::uint64_t accumulator_bits(DataType dtype, Scalar value) {
  return visit_data_type(dtype, [&]<class T>() -> std::uint64_t {
    const auto wide = value.to<AccumulatorOf<T>>();
    std::uint64_t bits = 0;
    std::memcpy(&bits, &wide, sizeof wide);  // little-endian, as all that tutti runs on
    return bits;
  });
}

}  // namespace tutti
