// Integers from JSON as they were written. The library's own conversions take `true` for 1, cut off
// fractions, and keep the low bits of what does not fit.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace tutti {

// Throws nlohmann's exceptions, as at() does: whoever reads a document catches them.
template <class T, class Json>
T integer_in(const Json& object, const char* name) {
  const Json& value = object.at(name);
  if (value.is_number_unsigned()) {
    const auto number = value.template get<std::uint64_t>();
    if (std::in_range<T>(number)) return static_cast<T>(number);
  } else if (value.is_number_integer()) {
    const auto number = value.template get<std::int64_t>();
    if (std::in_range<T>(number)) return static_cast<T>(number);
  }
  throw nlohmann::detail::type_error::create(
      302, std::string(name) + " must be an integer that fits its type", &value);
}

}  // namespace tutti
