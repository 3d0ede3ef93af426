#include "bench/matmul/sets.hpp"

#include <algorithm>

#include "base/try.hpp"
#include "base/units.hpp"

namespace tutti::cli {
namespace {

constexpr std::size_t kAlignment = 256;  // of a matrix

std::size_t aligned(std::size_t elements, DataType dtype) {
  return round_up(elements * size_of(dtype), kAlignment);
}

}  // namespace

MatmulSets::MatmulSets(MatmulDevice& device, const MatmulSetting& setting, std::size_t most)
    : device_(&device),
      setting_(setting),
      a_bytes_(aligned(setting.extents.m * setting.extents.k, setting.dtype)),
      b_bytes_(aligned(setting.extents.k * setting.extents.n, setting.dtype)),
      c_bytes_(aligned(setting.extents.m * setting.extents.n, setting.dtype)),
      bias_bytes_(aligned(setting.extents.n, setting.dtype)) {
  const auto& [m, n, k] = setting.extents;
  const auto products = static_cast<std::size_t>(setting.products);
  set_bytes_ = (m * k + products * (k * n + m * n)) * size_of(setting.dtype);
  sets_ = std::clamp<std::size_t>(ceil_div(device.rotated_bytes(), set_bytes_), 1, most);
}

Result<MatmulSets> MatmulSets::make(MatmulDevice& device, const MatmulSetting& setting,
                                    std::size_t most) {
  MatmulSets sets(device, setting, most);
  TUTTI_TRY(sets.allocate());
  TUTTI_TRY(sets.fill());
  return sets;
}

Status MatmulSets::allocate() {
  const auto products = static_cast<std::size_t>(setting_.products);
  TUTTI_ASSIGN(a_, device_->allocate(sets_ * a_bytes_));
  TUTTI_ASSIGN(b_, device_->allocate(sets_ * products * b_bytes_));
  TUTTI_ASSIGN(c_, device_->allocate(sets_ * products * c_bytes_));
  if (setting_.bias) {
    TUTTI_ASSIGN(bias_, device_->allocate(products * bias_bytes_));
  }
  return Status::ok();
}

Status MatmulSets::fill() {
  const DataType dtype = setting_.dtype;
  const Numbers a(dtype, 0);
  for (std::size_t set = 0; set < sets_; ++set) {
    TUTTI_TRY(repeat(a_.get() + set * a_bytes_, a_bytes_, a));
  }
  for (int product = 0; product < setting_.products; ++product) {
    const auto which = static_cast<std::size_t>(product);
    const Numbers b(dtype, 1 + 2 * which), bias(dtype, 2 + 2 * which);
    for (std::size_t set = 0; set < sets_; ++set) {
      TUTTI_TRY(repeat(b_.get() + at(set, product) * b_bytes_, b_bytes_, b));
    }
    if (setting_.bias) {
      TUTTI_TRY(repeat(bias_.get() + which * bias_bytes_, bias_bytes_, bias));
    }
    if (!setting_.check) continue;
    references_.emplace_back(MatmulFactors{.extents = setting_.extents,
                                           .dtype = dtype,
                                           .layout = setting_.layout,
                                           .a = a,
                                           .b = b,
                                           .bias = setting_.bias ? &bias : nullptr});
  }
  return Status::ok();
}

// The first periods come from here, what follows from what is there: twice as much each time.
Status MatmulSets::repeat(std::byte* to, std::size_t bytes, const Numbers& numbers) {
  const std::size_t period = numbers.period().size();
  std::size_t done = std::min(bytes, period);
  TUTTI_TRY(device_->copy(to, numbers.period().data(), done));
  while (done < bytes) {
    const std::size_t now = std::min(done, bytes - done);
    TUTTI_TRY(device_->copy(to + done, to, now));
    done += now;
  }
  return Status::ok();
}

Status MatmulSets::poison() {
  const auto products = static_cast<std::size_t>(setting_.products);
  return device_->fill(c_.get(), kPoison, sets_ * products * c_bytes_);
}

Result<Mismatches> MatmulSets::check(std::size_t set, bool flip) const {
  const auto& [m, n, k] = setting_.extents;
  const std::size_t row = n * size_of(setting_.dtype);
  const std::size_t rows_at_once = std::clamp<std::size_t>(64 * MiB / row, 1, m);
  Bytes rows(rows_at_once * row);
  Mismatches found;
  for (int product = 0; product < setting_.products; ++product) {
    for (std::size_t first = 0; first < m; first += rows_at_once) {
      const std::size_t bytes = std::min(rows_at_once, m - first) * row;
      TUTTI_TRY(device_->copy(rows.data(), c(set, product) + first * row, bytes));
      if (flip && product == 0 && first == 0) rows[size_of(setting_.dtype) - 1] ^= std::byte{0x80};
      const MatmulReference& reference = references_[static_cast<std::size_t>(product)];
      const Mismatches here = reference.check(first, ByteView(rows).first(bytes));
      if (found.count == 0) found.first = here.first;
      found.count += here.count;
    }
  }
  return found;
}

}  // namespace tutti::cli
