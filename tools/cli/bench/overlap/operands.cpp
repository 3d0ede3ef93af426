#include "bench/overlap/operands.hpp"

#include <algorithm>
#include <cmath>

#include "base/try.hpp"
#include "bench/overlap/arithmetic.hpp"

namespace tutti::cli {
namespace {

constexpr std::size_t kPeriodsAtOnce = 64;  // that travel between here and the engine's memory
constexpr std::size_t kSamples = 256;       // of C
constexpr std::uint64_t kSeedOfA = 1, kSeedOfB = 2, kSeedOfParts = 16;

std::uint64_t seed_of(std::uint64_t what, std::uint32_t iteration) {
  return what | std::uint64_t{iteration} << 32;
}

}  // namespace

Status Operands::fill(std::uint32_t iteration) {
  const MatmulShape& shape = setting_.matmul;
  matrices_.clear();
  parts_.clear();
  for (int rank = 0; rank < setting_.ranks; ++rank) {
    const std::uint64_t what = kSeedOfParts + static_cast<std::uint64_t>(rank);
    parts_.emplace_back(shape.dtype, seed_of(what, iteration));
  }
  for (const std::uint64_t what : {kSeedOfA, kSeedOfB}) {
    matrices_.emplace_back(shape.dtype, seed_of(what, iteration));
  }
  const auto mine = static_cast<std::size_t>(setting_.rank);
  TUTTI_TRY(write(places_.part, setting_.part_bytes, parts_[mine]));
  TUTTI_TRY(write(places_.b, shape.k * shape.n * element(), matrices_[1]));
  if (!setting_.dependent) {
    return write(places_.a, shape.m * shape.k * element(), matrices_[0]);
  }
  // For the matmul alone. Whoever gathers poisons it before.
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    std::byte* const to = places_.gathered + rank * setting_.part_bytes;
    TUTTI_TRY(write(to, setting_.part_bytes, parts_[rank]));
  }
  return Status::ok();
}

Status Operands::write(std::byte* to, std::size_t bytes, const Numbers& numbers) {
  host_.resize(std::min(bytes, kPeriodsAtOnce * numbers.period().size()));
  tile(host_, numbers.period());
  for (std::size_t at = 0; at < bytes; at += host_.size()) {
    const auto now = std::min(host_.size(), bytes - at);
    TUTTI_TRY(memory_.write(to + at, ByteView(host_).first(now)));
  }
  return Status::ok();
}

double Operands::a(std::size_t index) const {
  if (!setting_.dependent) return matrices_[0][index];
  const std::size_t part = setting_.part_bytes / element();
  return parts_[index / part][index % part];
}

// The sum of k random products is off by what fp32 loses at each step, which grows like a random
// walk; eight times that is never exceeded by chance. TF32 loses more of each factor.
bool Operands::is_right(std::size_t row, std::size_t column, double got) const {
  const MatmulShape& shape = setting_.matmul;
  const std::size_t n = shape.n, k = shape.k;
  double want = 0, squares = 0;
  for (std::size_t i = 0; i < k; ++i) {
    const double product = a(row * k + i) * matrices_[1][i * n + column];
    want += product;
    squares += product * product;
  }
  constexpr double kNever = 8;
  const double step =
      shape.tf32 ? std::ldexp(1, -10) : std::ldexp(std::sqrt(static_cast<double>(k)), -24);
  const double bound =
      kNever * step * std::sqrt(squares) + 2 * rounding_of(shape.dtype) * std::abs(want);
  return std::abs(got - want) <= bound;  // never of NaN
}

std::size_t Operands::product_bytes_of(const Setting& setting) {
  if (setting.threads > 0) return setting.threads * sizeof(std::uint32_t);
  return setting.matmul.m * setting.matmul.n * size_of(setting.matmul.dtype);
}

std::array<std::span<std::byte>, 2> Operands::written_by_gather() const {
  const std::span all(places_.gathered, gathered_bytes());
  const std::size_t mine = setting_.part_bytes * static_cast<std::size_t>(setting_.rank);
  if (places_.part != places_.gathered + mine) return {all, {}};
  return {all.first(mine), all.subspan(mine + setting_.part_bytes)};
}

Result<Mismatches> Operands::check_arithmetic(bool flip) const {
  const Numbers& first = setting_.dependent ? parts_.front() : matrices_.front();
  const auto seed = from_bytes<std::uint32_t>(ByteView(first.period()).first(4));
  TUTTI_ASSIGN(const std::uint32_t steps, arithmetic_steps(setting_.matmul, setting_.threads));
  Bytes results(product_bytes());
  TUTTI_TRY(memory_.read(results, places_.c));
  if (flip) results.front() ^= std::byte{1};
  Mismatches found;
  for (std::size_t t = 0; t < setting_.threads; ++t) {
    const auto got =
        from_bytes<std::uint32_t>(ByteView(results).subspan(t * sizeof steps).first(4));
    if (got == arithmetic_result(seed + static_cast<std::uint32_t>(t), steps)) continue;
    if (found.count++ == 0) found.first = t;
  }
  return found;
}

Result<Mismatches> Operands::check_product(bool flip) const {
  if (setting_.threads > 0) return check_arithmetic(flip);
  const MatmulShape& shape = setting_.matmul;
  Mismatches found;
  Bytes got(element());
  for (std::size_t sample = 0; sample < kSamples; ++sample) {
    // The two ends, and what lies between.
    const std::size_t index = sample == 0   ? 0
                              : sample == 1 ? elements_of_c() - 1
                                            : scrambled(sample) % elements_of_c();
    TUTTI_TRY(memory_.read(got, places_.c + index * element()));
    if (flip && sample == 0) got.back() ^= std::byte{0x80};  // the sign
    if (is_right(index / shape.n, index % shape.n, number_of(shape.dtype, got))) continue;
    if (found.count++ == 0) found.first = index;
  }
  return found;
}

Result<Mismatches> Operands::check_gathered(bool flip) {
  Mismatches found;
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    const Bytes& period = parts_[rank].period();
    const std::size_t begin = rank * setting_.part_bytes;
    for (std::size_t at = 0; at < setting_.part_bytes; at += kPeriodsAtOnce * period.size()) {
      host_.resize(std::min(kPeriodsAtOnce * period.size(), setting_.part_bytes - at));
      TUTTI_TRY(memory_.read(host_, places_.gathered + begin + at));
      if (flip && begin + at == 0) host_.front() ^= std::byte{1};
      const Mismatches here = count_mismatches(host_, period, element());
      if (found.count == 0) found.first = (begin + at) / element() + here.first;
      found.count += here.count;
    }
  }
  return found;
}

}  // namespace tutti::cli
