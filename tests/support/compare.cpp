#include "support/compare.hpp"

#include <fmt/format.h>

#include <type_traits>

#include "tutti/device/scalar.hpp"

namespace tutti::test {
namespace {

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else if constexpr (std::is_same_v<T, double>) {
    return value != value;
  } else {
    const float wide = to_float(value);
    return wide != wide;
  }
}

template <class T>
std::string describe(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  if constexpr (std::is_arithmetic_v<T>) {
    return fmt::format("{} (0x{:0{}x})", value, bits, 2 * sizeof value);
  } else {
    return fmt::format("{} (0x{:0{}x})", to_float(value), bits, 2 * sizeof value);
  }
}

}  // namespace

std::string difference(DataType dtype, ByteView expected, ByteView seen) {
  if (expected.size() != seen.size()) {
    return fmt::format("{} bytes expected, {} seen", expected.size(), seen.size());
  }
  if (std::equal(expected.begin(), expected.end(), seen.begin())) return {};
  return visit_data_type(dtype, [&]<class T>() {
    std::string first;
    std::size_t wrong = 0;
    const std::size_t count = seen.size() / sizeof(T);
    for (std::size_t i = 0; i < count; ++i) {
      T a, b;
      std::memcpy(&a, expected.data() + i * sizeof(T), sizeof(T));
      std::memcpy(&b, seen.data() + i * sizeof(T), sizeof(T));
      if (std::memcmp(&a, &b, sizeof(T)) == 0 || (is_nan(a) && is_nan(b))) continue;
      if (wrong++ == 0) {
        first = fmt::format("element {}: expected {}, got {}", i, describe(a), describe(b));
      }
    }
    return wrong == 0 ? std::string() : fmt::format("{}; {} of {} wrong", first, wrong, count);
  });
}

}  // namespace tutti::test
