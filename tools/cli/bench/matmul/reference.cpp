#include "bench/matmul/reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace tutti::cli {
namespace {

constexpr std::size_t kElements = 256;  // beside rows, columns and corners

// Calls `use(values, at, count)` for each run of the endless repetition, from element `index` on.
template <class Use>
void for_each_run(const Numbers& numbers, std::size_t index, std::size_t count, Use use) {
  const std::span<const float> values = numbers.values();
  for (std::size_t done = 0; done < count;) {
    const std::size_t from = (index + done) % values.size();
    const std::size_t now = std::min(values.size() - from, count - done);
    use(values.subspan(from, now), done);
    done += now;
  }
}

// The sum of x[i] * numbers[index + i]. Several sums, so that one does not wait for the other.
double dot(std::span<const double> x, const Numbers& numbers, std::size_t index) {
  constexpr std::size_t kSums = 8;
  std::array<double, kSums> sums{};
  for_each_run(numbers, index, x.size(), [&](std::span<const float> values, std::size_t at) {
    const double* const mine = &x[at];
    std::size_t i = 0;
    for (; i + kSums <= values.size(); i += kSums) {
      for (std::size_t s = 0; s < kSums; ++s) {
        sums[s] += mine[i + s] * static_cast<double>(values[i + s]);
      }
    }
    for (; i < values.size(); ++i) sums[0] += mine[i] * static_cast<double>(values[i]);
  });
  double sum = 0;
  for (const double each : sums) sum += each;
  return sum;
}

std::vector<double> row_of_a(const MatmulFactors& f, std::size_t row) {
  std::vector<double> values(f.extents.k);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = f.a[row * f.extents.k + i];
  return values;
}

std::vector<double> column_of_b(const MatmulFactors& f, std::size_t column) {
  std::vector<double> values(f.extents.k);
  const bool by_row = f.layout == MatrixLayout::kRowMajor;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = f.b[by_row ? i * f.extents.n + column : column * f.extents.k + i];
  }
  return values;
}

double bias_of(const MatmulFactors& f, std::size_t column) {
  return f.bias == nullptr ? 0 : (*f.bias)[column];
}

}  // namespace

// A sum of k products, each of the size 1/3, is of the size sqrt(k) / 3. Each step in fp32 rounds
// it, so that relative to it the error grows with sqrt(k), as a random walk does; 16 times that is
// never exceeded by chance, nor by sums that are cut off instead of rounded.
MatmulReference::MatmulReference(const MatmulFactors& f)
    : rows_(f.extents.m), columns_(f.extents.n), element_(size_of(f.dtype)), dtype_(f.dtype) {
  constexpr double kNever = 16;
  const double k = static_cast<double>(f.extents.k), size = std::sqrt(k / 9 + 1);
  slack_ = kNever * std::ldexp(std::sqrt(k), -24) * size;
  // The last ones are of tiles that may be cut off.
  for (const std::size_t row : {scrambled(1) % rows_, rows_ - 1}) add_row(f, row);
  for (const std::size_t column : {scrambled(2) % columns_, columns_ - 1}) add_column(f, column);
  const auto add = [&](std::size_t row, std::size_t column) {
    const double sum = dot(column_of_b(f, column), f.a, row * f.extents.k);
    samples_.push_back({row, column, sum + bias_of(f, column)});
  };
  add(0, 0);
  for (std::size_t i = 0; i < kElements; ++i) {
    const std::size_t index = scrambled(3 + i) % (rows_ * columns_);
    add(index / columns_, index % columns_);
  }
  std::ranges::stable_sort(samples_, {}, &Sample::row);
}

void MatmulReference::add_row(const MatmulFactors& f, std::size_t row) {
  const std::vector<double> a = row_of_a(f, row);
  std::vector<double> sums(columns_);
  if (f.layout == MatrixLayout::kColumnMajor) {
    for (std::size_t j = 0; j < columns_; ++j) sums[j] = dot(a, f.b, j * f.extents.k);
  } else {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double factor = a[i];
      for_each_run(f.b, i * columns_, columns_, [&](std::span<const float> values, std::size_t at) {
        for (std::size_t j = 0; j < values.size(); ++j) {
          sums[at + j] += factor * static_cast<double>(values[j]);
        }
      });
    }
  }
  for (std::size_t j = 0; j < columns_; ++j) {
    samples_.push_back({row, j, sums[j] + bias_of(f, j)});
  }
}

void MatmulReference::add_column(const MatmulFactors& f, std::size_t column) {
  const std::vector<double> b = column_of_b(f, column);
  for (std::size_t i = 0; i < rows_; ++i) {
    samples_.push_back({i, column, dot(b, f.a, i * f.extents.k) + bias_of(f, column)});
  }
}

bool MatmulReference::is_right(double want, double got) const {
  return std::abs(got - want) <=
         slack_ + rounding_of(dtype_) * (std::abs(want) + slack_);  // no NaN
}

Mismatches MatmulReference::check(std::size_t first, ByteView rows) const {
  const std::size_t end = first + rows.size() / (columns_ * element_);
  auto sample = std::ranges::lower_bound(samples_, first, {}, &Sample::row);
  Mismatches found;
  for (; sample != samples_.end() && sample->row < end; ++sample) {
    const std::size_t at = (sample->row - first) * columns_ + sample->column;
    const double got = number_of(dtype_, rows.subspan(at * element_, element_));
    if (is_right(sample->value, got)) continue;
    const std::size_t index = first * columns_ + at;
    found.first = found.count == 0 ? index : std::min(found.first, index);
    ++found.count;
  }
  return found;
}

}  // namespace tutti::cli
