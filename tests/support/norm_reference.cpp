#include "support/norm_reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "support/reference.hpp"
#include "tutti/device/scalar.hpp"

namespace tutti::test {
namespace {

using Floats = std::vector<float>;

Floats floats_of(DataType dtype, ByteView bytes) {
  return visit_data_type(dtype, [&]<class T>() {
    Floats values(bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      if constexpr (!std::is_integral_v<T> && sizeof(T) < 8) values[i] = to_float(value);
    }
    return values;
  });
}

Bytes rounded(DataType dtype, const Floats& values) {
  return visit_data_type(dtype, [&]<class T>() {
    Bytes bytes(values.size() * sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (!std::is_integral_v<T> && sizeof(T) < 8) {
        const T value = from_float<T>(values[i]);
        std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
      }
    }
    return bytes;
  });
}

// x[k] + x[k + n/2] for each k of the first half, and so on, until one is left.
float halved(const Floats& x) {
  if (x.size() == 1) return x[0];
  Floats half(x.size() / 2);
  for (std::size_t k = 0; k < half.size(); ++k) half[k] = x[k] + x[k + half.size()];
  return halved(half);
}

// As collectives.hpp and device/token_sum.hpp have it: of 16 bytes, then of 32 of those, which
// are dealt to 32 lanes.
float sum_of_squares(const Floats& token, std::size_t element) {
  const std::size_t per_part = 16 / element;
  Floats lanes(32, 0.0F);
  for (std::size_t first = 0, group = 0; first < token.size(); first += 32 * per_part, ++group) {
    Floats parts(32, 0.0F);
    for (std::size_t p = 0; p < 32 && first + p * per_part < token.size(); ++p) {
      Floats squares;
      for (std::size_t e = 0; e < per_part; ++e) {
        const float x = token[first + p * per_part + e];
        squares.push_back(x * x);
      }
      parts[p] = halved(squares);
    }
    lanes[group % 32] += halved(parts);
  }
  return halved(lanes);
}

double exact_factor(const NormSpec& spec, const Floats& token) {
  double squares = 0;
  for (const float x : token) squares += double{x} * double{x};
  return 1 / std::sqrt(squares / static_cast<double>(spec.hidden) + double{spec.epsilon});
}

// One token; raises `error`.
Floats normalised(const NormSpec& spec, const Floats& token, const Floats& weight, double& error) {
  const float squares = sum_of_squares(token, size_of(spec.inputs.dtype));
  const float mean = squares / static_cast<float>(spec.hidden);
  const float factor = 1.0F / std::sqrt(mean + spec.epsilon);
  const double exactly = exact_factor(spec, token);
  const bool has_8_bits = size_of(spec.output_dtype) == 1;
  Floats result(token.size());
  for (std::size_t i = 0; i < token.size(); ++i) {
    result[i] = token[i] * factor * weight[i];
    if (has_8_bits) result[i] = result[i] / spec.scale;
    const double right =
        double{token[i]} * exactly * double{weight[i]} / (has_8_bits ? double{spec.scale} : 1.0);
    const bool normal = std::isfinite(squares) && std::abs(right) > 1e-30;
    if (normal) error = std::max(error, std::abs(double{result[i]} - right) / std::abs(right));
  }
  return result;
}

}  // namespace

NormAnswer norm_answer(const NormSpec& spec, int rank) {
  const DataType dtype = spec.inputs.dtype;
  NormAnswer answer;
  InputSpec other = spec.inputs;
  other.seed += 7919;
  answer.residual = make_input(other, 0, spec.count());
  other.seed += 7919;
  answer.weight = make_input(other, 0, spec.hidden);

  Reference sum(dtype, OpKind::kSum, spec.count());
  for (int r = 0; r < spec.inputs.ranks; ++r) {
    Bytes input = make_input(spec.inputs, r, spec.count());
    sum.add(input);
    if (r == rank) answer.input = std::move(input);
  }
  Floats added = floats_of(dtype, sum.result());
  const Floats residual = floats_of(dtype, answer.residual);
  for (std::size_t i = 0; i < added.size(); ++i) added[i] += residual[i];
  answer.residual_output = rounded(dtype, added);

  added = floats_of(dtype, answer.residual_output);
  const Floats weight = floats_of(dtype, answer.weight);
  Floats output;
  for (std::size_t first = 0; first < added.size(); first += spec.hidden) {
    const auto begin = added.begin() + static_cast<std::ptrdiff_t>(first);
    const Floats token(begin, begin + static_cast<std::ptrdiff_t>(spec.hidden));
    const Floats row = normalised(spec, token, weight, answer.error);
    output.insert(output.end(), row.begin(), row.end());
  }
  answer.output = rounded(spec.output_dtype, output);
  return answer;
}

}  // namespace tutti::test
