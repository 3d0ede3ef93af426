#include "base/convert.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

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
T to_integer(double value) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(value)) return 0;
  // 2^digits is exact in double, where the largest value itself may not be.
  if (value >= std::ldexp(1.0, Limits::digits)) return Limits::max();
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  return static_cast<T>(value);
}

template <class T>
T to_element(double value) {
  if constexpr (std::is_integral_v<T>) {
    return to_integer<T>(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    return from_float<T>(to_odd_float(value));
  }
}

}  // namespace

void store_element(DataType dtype, void* at, double value) {
  visit_data_type(dtype, [&]<class T>() {
    const T element = to_element<T>(value);
    std::memcpy(at, &element, sizeof element);
  });
}

double within_range(DataType dtype, double value) {
  return visit_data_type(dtype, [&]<class T>() {
    if constexpr (!std::is_integral_v<T>) {
      return value;
    } else {
      if (std::isnan(value)) return 0.0;
      const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
      const double least = static_cast<double>(std::numeric_limits<T>::min());
      const double most = sizeof(T) < 8 ? beyond - 1 : std::nextafter(beyond, 0.0);
      return std::clamp(value, least, most);
    }
  });
}

double load_element(DataType dtype, const void* at) {
  return visit_data_type(dtype, [&]<class T>() {
    T element;
    std::memcpy(&element, at, sizeof element);
    return static_cast<double>(widen(element));
  });
}

}  // namespace tutti
