#include "bench/norm_inputs.hpp"

#include <cmath>
#include <cstring>

#include "tutti/device/scalar.hpp"

namespace tutti::cli {
namespace {

constexpr double kComputed = 1.0 / (1 << 20);  // what collectives.hpp promises before the rounding

// At most 7, 15 and 2.25: sums of 16 ranks have an exact place in every type.
double part_of(int rank, std::size_t i, std::uint32_t iteration) {
  return static_cast<double>((i * 7 + static_cast<std::size_t>(rank) * 3 + iteration) % 15) - 7;
}
double residual_of(std::size_t i, std::uint32_t iteration) {
  return static_cast<double>((i * 5 + iteration) % 31) - 15;
}
double weight_of(std::size_t k) { return 0.5 + static_cast<double>(k % 8) / 4; }

void put(DataType dtype, Bytes& bytes, std::size_t at, double value) {
  const auto store = [&](auto element) {
    std::memcpy(bytes.data() + at * sizeof element, &element, sizeof element);
  };
  const auto narrow = static_cast<float>(value);
  if (dtype == DataType::kFloat16) return store(from_float<Half>(narrow));
  if (dtype == DataType::kBfloat16) return store(from_float<Bfloat16>(narrow));
  store(narrow);
}

double get(DataType dtype, ByteView bytes, std::size_t at) {
  const auto load = [&](auto element) {
    std::memcpy(&element, bytes.data() + at * sizeof element, sizeof element);
    return double{to_float(element)};
  };
  if (dtype == DataType::kFloat16) return load(Half{});
  if (dtype == DataType::kBfloat16) return load(Bfloat16{});
  return load(float{});
}

}  // namespace

Bytes NormInputs::input(int rank, std::uint32_t iteration) const {
  Bytes bytes(input_bytes());
  const std::size_t count = shape_.count();
  for (std::size_t i = 0; i < count; ++i) {
    put(shape_.dtype, bytes, i, part_of(rank, i, iteration));
    put(shape_.dtype, bytes, count + i, residual_of(i, iteration));
  }
  for (std::size_t k = 0; k < shape_.hidden; ++k) {
    put(shape_.dtype, bytes, 2 * count + k, weight_of(k));
  }
  return bytes;
}

double NormInputs::added(std::size_t i, std::uint32_t iteration) const {
  double sum = residual_of(i, iteration);
  for (int r = 0; r < shape_.ranks; ++r) sum += part_of(r, i, iteration);
  return sum;
}

double NormInputs::bound() const {
  const int bits = shape_.dtype == DataType::kBfloat16  ? 8
                   : shape_.dtype == DataType::kFloat16 ? 11
                                                        : 24;
  return std::ldexp(1, -bits) + kComputed;
}

Mismatches NormInputs::count_wrong(ByteView output, std::uint32_t iteration) const {
  Mismatches found;
  const std::size_t count = shape_.count();
  const auto judge = [&](std::size_t at, double right, double bound) {
    const double seen = get(shape_.dtype, output, at);
    if (std::abs(seen - right) <= bound * std::abs(right)) return;  // never of NaN
    if (found.count++ == 0) found.first = at;
  };
  for (std::size_t first = 0; first < count; first += shape_.hidden) {
    double squares = 0;
    for (std::size_t i = first; i < first + shape_.hidden; ++i) {
      const double value = added(i, iteration);
      squares += value * value;
      judge(i, value, 0);
    }
    const double factor =
        1 / std::sqrt(squares / static_cast<double>(shape_.hidden) + double{kEpsilon});
    for (std::size_t i = first; i < first + shape_.hidden; ++i) {
      judge(count + i, added(i, iteration) * factor * weight_of(i - first), bound());
    }
  }
  return found;
}

}  // namespace tutti::cli
